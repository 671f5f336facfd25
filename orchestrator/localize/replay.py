"""The origin alone, on its own dumped inputs: many times, in fresh processes, with other threads and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import foxrun
from orchestrator.localize.operations import Found
from orchestrator.localize.origins import Origin
from orchestrator.localize.result import OUTPUTS_DIFFER, Replay
from orchestrator.localize.session import Session
from orchestrator.twin_run import this_interpreter

FILLS = ("85", "170")
LIMIT_S = 120.0


def computes(origin: Origin) -> bool:
    """Whether the origin is an operation that got equal inputs and gave different outputs, of memory that was set."""
    return (
        origin.how == OUTPUTS_DIFFER and not origin.outside and not origin.unset and origin.a.kind in ("op", "kernel")
    )


def replay(session: Session, main: Found, found: Sequence[Found]) -> Replay | None:
    """Run the origin alone on the tensors that a later trial kept; None where it computes nothing.

    They are of another run than the one that named it, so the operation is found again by its index and its name.
    """
    origin = main.origin
    if origin is None or not computes(origin):
        return None
    for item in found:
        for folder in item.pair.folder.glob("twin1/trace/*/dumps/event-*"):
            if _name(folder) == origin.a.name:
                session.listener.stage(f"replaying {origin.a.name} alone, {session.options.replay_runs} times")
                return _replayed(session, folder)
    return Replay(runs=0, processes=0, parted=0, note="not replayed: no trial kept the inputs of this operation")


def _name(folder: Path) -> str:
    try:
        return str(json.loads((folder / "event.json").read_text("utf-8")).get("name", ""))
    except (OSError, ValueError):
        return ""


def _replayed(session: Session, folder: Path) -> Replay:
    runs = session.options.replay_runs
    counts = sorted({1, 2, os.cpu_count() or 1, 2 * (os.cpu_count() or 1)})
    python = _python(session.request.command)
    first = _once(python, folder, runs, counts, session.request.environ, session.left)
    if "unsupported" in first:
        return Replay(runs=0, processes=0, parted=0, note=f"not replayed: {first['unsupported']}")
    varied = {}
    prints = first["prints"]
    others = [count for count, seen in first["threads"].items() if seen != prints]
    varied["threads"] = (
        f"parted with {', '.join(others)} instead of {first['usual_threads']}"
        if others
        else f"agreed with {', '.join(map(str, counts))}"
    )
    if first.get("streams") is not None:
        varied["streams"] = "agreed on another stream" if first["streams"] == prints else "parted on another stream"
    fresh = []
    for fill in FILLS:
        again = _once(python, folder, 0, [], {**session.request.environ, "MALLOC_PERTURB_": fill}, session.left)
        fresh.append(again.get("prints"))
    filled = [*first.get("allocations", []), *fresh]
    varied["memory"] = (
        "parted with other bytes in fresh memory"
        if any(item != prints for item in filled)
        else "agreed with other bytes in fresh memory"
    )
    varied["processes"] = (
        "parted from the first process" if any(item != prints for item in fresh) else "agreed in fresh processes"
    )
    return Replay(
        runs=runs,
        processes=1 + len(fresh),
        parted=int(first["parted"]),
        max_ulp=int(first["max_ulp"]) if first["parted"] else None,
        max_abs=float(first["max_abs"]) if first["parted"] else None,
        varied=varied,
    )


def _python(command: tuple[str, ...]) -> str:
    """The interpreter of the program, where its command shows one."""
    program = this_interpreter(command)[0]
    return program if "python" in Path(program).name else sys.executable


def _once(
    python: str, folder: Path, runs: int, counts: list[int], environ: Mapping[str, str], limit_s: float
) -> dict[str, Any]:
    environment = {key: value for key, value in environ.items() if key != "FOXRUN_TRACE"}
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(foxrun.__file__).parents[1]), environment.get("PYTHONPATH", "")])
    )
    words = [
        python,
        "-P",
        "-m",
        "foxrun.tracing.replay",
        str(folder),
        "--runs",
        str(runs),
        "--threads",
        ",".join(map(str, counts)),
    ]
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, timeout=max(1.0, min(LIMIT_S, limit_s)), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"unsupported": f"it did not end: {type(error).__name__}"}
    try:
        found = json.loads(done.stdout.decode().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        return {"unsupported": last[:200]}
    return found if isinstance(found, dict) else {"unsupported": "no result"}

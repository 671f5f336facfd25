"""The origin alone, on its own dumped inputs: many times, in fresh processes, with other threads and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import foxrun
from orchestrator.localize.operations import Found
from orchestrator.localize.pair import Kind, Pair, Window
from orchestrator.localize.result import OUTPUTS_DIFFER, Replay
from orchestrator.localize.session import Session
from orchestrator.twin_run import this_interpreter

PROGRAM = Path(foxrun.__file__).parent / "tracing" / "reenact.py"
FILLS = ("85", "170")
LIMIT_S = 120.0


def replay(session: Session, kind: Kind, found: Found) -> Replay | None:
    """Dump the origin's tensors in one more pair and run it alone; None where the origin computes nothing.

    The dump is of another run, so the operation is found again by its index and its name.
    """
    origin = found.origin
    if (
        origin is None
        or origin.how != OUTPUTS_DIFFER
        or origin.outside
        or origin.unset
        or origin.a.kind not in ("op", "kernel")
    ):
        return None
    window = Window(
        level="operations",
        first_step=found.first_step,
        last_step=max(origin.a.step, found.first_step),
        stop_after=max(origin.a.step, found.first_step),
        dump=((origin.process, origin.a.i),),
    )
    pair = session.run(kind, window, f"once more, keeping the inputs of {origin.a.name}")
    try:
        folder = _dumped(pair, origin.process, origin.a.i)
        name = _name(folder)
        if folder is None or name != origin.a.name:
            text = f"not replayed: event {origin.a.i} was {name or 'not there'} in the run that kept it"
            return Replay(runs=0, processes=0, parted=0, note=text)
        session.listener.stage(f"replaying {name} alone, {session.options.replay_runs} times")
        return _replayed(session, folder)
    finally:
        session.drop(pair)


def _dumped(pair: Pair, process: str, index: int) -> Path | None:
    there = pair.a.processes.get(process)
    folder = there.folder / "dumps" / f"event-{index}" if there is not None else None
    return folder if folder is not None and (folder / "event.json").is_file() else None


def _name(folder: Path | None) -> str:
    if folder is None:
        return ""
    try:
        return str(json.loads((folder / "event.json").read_text("utf-8")).get("name", ""))
    except (OSError, ValueError):
        return ""


def _replayed(session: Session, folder: Path) -> Replay:
    runs = session.options.replay_runs
    counts = sorted({1, 2, os.cpu_count() or 1, 2 * (os.cpu_count() or 1)})
    python = _python(session.request.command)
    first = _once(python, folder, runs, counts, session.request.environ)
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
    fresh = []
    for fill in FILLS:
        again = _once(python, folder, 0, [], {**session.request.environ, "MALLOC_PERTURB_": fill})
        fresh.append(again.get("prints"))
    varied["memory"] = (
        "parted between processes whose fresh memory holds other bytes"
        if fresh[0] != fresh[1]
        else "agreed with fresh memory filled in two ways"
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


def _once(python: str, folder: Path, runs: int, counts: list[int], environ: Mapping[str, str]) -> dict[str, Any]:
    environment = {key: value for key, value in environ.items() if key != "FOXRUN_TRACE"}
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(foxrun.__file__).parents[1]), environment.get("PYTHONPATH", "")])
    )
    words = [python, str(PROGRAM), str(folder), str(runs), ",".join(map(str, counts))]
    try:
        done = subprocess.run(words, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"unsupported": f"it did not end: {type(error).__name__}"}
    try:
        found = json.loads(done.stdout.decode().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        return {"unsupported": last[:200]}
    return found if isinstance(found, dict) else {"unsupported": "no result"}

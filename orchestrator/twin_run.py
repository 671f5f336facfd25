"""Runs the two processes of a gate side by side, to their end or to a deadline; nothing of them survives it."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from orchestrator.errors import UsageError
from orchestrator.hostile import HOSTILITIES, START_DELAY_S, twin_environment
from orchestrator.twins import Twin, no_survivors

TWINS = ("twin1", "twin2")
POLL_S = 0.05
# When one twin has failed, the other is given as long again (and 10 s) to fail too: its message may be the clearer one.
GRACE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class GateRequest:
    """What to run twice. ``out`` receives ``twin1/``, ``twin2/`` and their logs; ``data`` is passed to both."""

    trainer: tuple[str, ...]
    out: Path
    seed: int
    mode: int
    steps: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    data: Path | None = None
    timeout_s: float = 1800.0
    hostilities: tuple[str, ...] = tuple(HOSTILITIES)


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Who hears of a gate while it runs: progress (twin, done, of), lines of output (twin, text), and what begins."""

    progress: Callable[[str, int, int], None] = lambda twin, done, of: None
    line: Callable[[str, str], None] = lambda twin, text: None
    stage: Callable[[str], None] = lambda text: None


@dataclass(frozen=True, kw_only=True)
class TwinRun:
    """Both twins (or the first alone, when it failed before the second began), ended or killed."""

    twins: tuple[Twin, ...]
    ended_in_time: bool

    @property
    def failed(self) -> list[Twin]:
        """Those that failed by themselves, in order of time."""
        return sorted((twin for twin in self.twins if twin.failed), key=lambda twin: twin.ended_at)


def run_twins(request: GateRequest, environ: Mapping[str, str], listener: Listener, *, directory: Path) -> TwinRun:
    """Run both in ``directory``.

    Raises:
        UsageError: the output directory is taken, or the trainer cannot be started.
    """
    for twin in TWINS:
        if (request.out / twin).exists():
            raise UsageError(f"{request.out / twin} is there already", remedy="choose another --out, or remove it")
    request.out.mkdir(parents=True, exist_ok=True)
    # What the twins write inside a repository must not change the tree that they record.
    (request.out / ".gitignore").write_text("*\n")
    scratch = Path(tempfile.mkdtemp(prefix="foxrun-gate-"))
    try:
        with no_survivors():
            return _run(request, environ, listener, directory, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(
    request: GateRequest, environ: Mapping[str, str], listener: Listener, directory: Path, scratch: Path
) -> TwinRun:
    started = time.monotonic()
    twins: list[Twin] = []
    # A gate that is stopped takes its twins along. A killed one too: the kernel ends them with their parent.
    previous = signal.signal(signal.SIGTERM, _interrupt) if _in_main_thread() else None
    try:
        while True:
            now = time.monotonic()
            if len(twins) < 2 and (not twins or now - started >= _delay(request)):
                twins.append(_start(TWINS[len(twins)], request, environ, scratch, directory))
            for twin in twins:
                twin.poll(listener.line)
                done, of = twin.progress()
                listener.progress(twin.name, done, of or request.steps)
            _write_progress(environ, twins, request.steps)
            if len(twins) == 2 and all(twin.ended for twin in twins):
                return TwinRun(twins=tuple(twins), ended_in_time=True)
            if any(twin.failed for twin in twins):
                if len(twins) < 2:
                    return TwinRun(twins=tuple(twins), ended_in_time=True)
                first = min(twin.ended_at - twin.started_at for twin in twins if twin.failed)
                if all(twin.ended or now - twin.started_at > 2 * first + GRACE_S for twin in twins):
                    return TwinRun(twins=tuple(twins), ended_in_time=True)
            if now - started > request.timeout_s:
                return TwinRun(twins=tuple(twins), ended_in_time=False)
            time.sleep(POLL_S)
    finally:
        for twin in twins:
            twin.kill()
            twin.poll(listener.line)
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def _delay(request: GateRequest) -> float:
    return START_DELAY_S if "clock" in request.hostilities else 0.0


def _start(name: str, request: GateRequest, environ: Mapping[str, str], scratch: Path, directory: Path) -> Twin:
    own = scratch / ("1" if name == "twin1" else "another-directory")
    (own / "tmp").mkdir(parents=True)
    out = request.out / name
    out.mkdir()
    files = {"ARGO_PROGRESS_FILE": own / "progress", "FOXRUN_TERMINATION_LOG": own / "termination-log"}
    env = twin_environment(
        name, {**environ, **{k: str(p) for k, p in files.items()}}, scratch=own, hostilities=request.hostilities
    )
    return Twin(
        name=name,
        command=[*this_interpreter(request.trainer), *trainer_arguments(request, out)],
        environment=env,
        directory=directory,
        log=request.out / f"{name}.log",
        progress_file=files["ARGO_PROGRESS_FILE"],
        message_file=files["FOXRUN_TERMINATION_LOG"],
    )


def trainer_arguments(request: GateRequest, out: Path | str) -> list[str]:
    """What a trainer is called with: docs/run-contract.md. The gate evaluates nothing: acting is in the steps."""
    arguments = [
        "--out",
        str(out.absolute() if isinstance(out, Path) else out),
        "--seed",
        str(request.seed),
        "--mode",
        str(request.mode),
    ]
    arguments += ["--steps", str(request.steps), "--eval-steps", "0"]
    arguments += ["--parameters", json.dumps(dict(request.parameters), ensure_ascii=False, sort_keys=True)]
    return [*arguments, *(["--data", str(request.data.absolute())] if request.data else [])]


def this_interpreter(command: tuple[str, ...]) -> list[str]:
    """The command, with ``python`` as the one that runs foxrun: it is the one that has the trainer's libraries."""
    return [sys.executable if command[0] in ("python", "python3") else command[0], *command[1:]]


def _write_progress(environ: Mapping[str, str], twins: list[Twin], steps: int) -> None:
    """``N/M`` of both twins together, for the engine and the Argo UI."""
    file = environ.get("ARGO_PROGRESS_FILE")
    if file:
        done = sum(min(twin.progress()[0], steps) for twin in twins)
        partial = Path(f"{file}.part")
        partial.write_text(f"{done}/{2 * steps}\n")
        partial.replace(file)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt

"""The gate: two fresh processes of the trainer, started together, of which the second is hostile, compared exactly.

It costs 50 steps and refuses a build that is not deterministic before any GPU hour is spent. Both processes run side by
side, so the gate takes hardly longer than one of them, and each is the other's load.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from orchestrator import comparison
from orchestrator.causes import likely_cause
from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import Part, Verdict
from orchestrator.errors import UsageError
from orchestrator.hostile import HOSTILITIES, START_DELAY_S, twin_environment
from orchestrator.outcome import describe_part
from orchestrator.settings import did_you_mean
from orchestrator.twins import Twin

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
    """Who hears of a gate while it runs: progress (twin, done, of) and lines of output (twin, text)."""

    progress: Callable[[str, int, int], None] = lambda twin, done, of: None
    line: Callable[[str, str], None] = lambda twin, text: None


def hostilities(only: Collection[str]) -> tuple[str, ...]:
    """All hostilities, or those named. Raises UsageError for one that there is not."""
    for name in only:
        if name not in HOSTILITIES:
            known = "; ".join(f"{key}: {text}" for key, text in HOSTILITIES.items())
            raise UsageError(
                f"the twins cannot differ in {name!r}{did_you_mean(name, list(HOSTILITIES))}", remedy=known
            )
    return tuple(name for name in HOSTILITIES if name in only) or tuple(HOSTILITIES)


def run_gate(
    request: GateRequest, environ: Mapping[str, str], listener: Listener | None = None, *, directory: Path | None = None
) -> Verdict:
    """Run the twins in ``directory`` (here, where none is given) and say whether they agree.

    Returns:
        ``identical``, ``gate_failed`` (they parted), ``job_failed`` (a twin failed), ``infrastructure`` (they did not
        end in time), ``incomparable`` or ``incomplete``; always with subject ``gate``.

    Raises:
        UsageError: the output directory is taken, or the trainer cannot be started.
    """
    for twin in TWINS:
        if (request.out / twin).exists():
            raise UsageError(f"{request.out / twin} is there already", remedy="choose another --out, or remove it")
    request.out.mkdir(parents=True, exist_ok=True)
    # What the twins write inside a repository must not change the tree that they record.
    (request.out / ".gitignore").write_text("*\n")
    notes = []
    if request.mode == 0:
        notes.append("mode 0 promises nothing, so the gate ran in mode 3, the same arithmetic made exact")
        request = dataclasses.replace(request, mode=3)
    scratch = Path(tempfile.mkdtemp(prefix="foxrun-gate-"))
    try:
        twins, ended_in_time = _run(request, environ, scratch, listener or Listener(), directory or Path.cwd())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    verdict = _verdict(request, twins, ended_in_time)
    return dataclasses.replace(verdict, subject="gate", notes=[*verdict.notes, *notes])


def _run(
    request: GateRequest, environ: Mapping[str, str], scratch: Path, listener: Listener, directory: Path
) -> tuple[list[Twin], bool]:
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
                return twins, True
            if any(twin.failed for twin in twins):
                if len(twins) < 2:
                    return twins, True
                first = min(twin.ended_at - twin.started_at for twin in twins if twin.failed)
                if all(twin.ended or now - twin.started_at > 2 * first + GRACE_S for twin in twins):
                    return twins, True
            if now - started > request.timeout_s:
                return twins, False
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


def trainer_arguments(request: GateRequest, out: Path) -> list[str]:
    """What a trainer is called with: docs/run-contract.md. The gate evaluates nothing: acting is in the steps."""
    arguments = ["--out", str(out.absolute()), "--seed", str(request.seed), "--mode", str(request.mode)]
    arguments += ["--steps", str(request.steps), "--eval-steps", "0"]
    arguments += ["--parameters", json.dumps(dict(request.parameters), ensure_ascii=False, sort_keys=True)]
    return [*arguments, *(["--data", str(request.data.absolute())] if request.data else [])]


def this_interpreter(command: tuple[str, ...]) -> list[str]:
    """The command, with ``python`` as the one that runs foxrun: it is the one that has the trainer's libraries."""
    return [sys.executable if command[0] in ("python", "python3") else command[0], *command[1:]]


def _verdict(request: GateRequest, twins: list[Twin], ended_in_time: bool) -> Verdict:
    logs = f"{request.out}/twin1.log and twin2.log"
    failed = sorted((twin for twin in twins if twin.failed), key=lambda twin: twin.ended_at)
    parts = [_part(twin) for twin in failed]
    if parts:
        message = f"the trainer failed in the gate: {'; then '.join(describe_part(part) for part in parts)}"
        if [twin.name for twin in failed] == ["twin2"]:
            message += "; only the hostile twin failed: " + likely_cause(None)
        return v.make(v.JOB_FAILED, message, parts=parts, next=f"read {logs}")
    if not ended_in_time:
        stood = ", ".join(f"{twin.name} at step {twin.progress()[0]} of {request.steps}" for twin in twins)
        return v.make(
            v.INFRASTRUCTURE,
            f"the gate did not end within {request.timeout_s:g} s: {stood}",
            next=f"read {logs}; if it is slow and not hung, give it a longer --timeout",
        )
    empty = [name for name in TWINS if not any((request.out / name).iterdir())]
    if empty:
        return v.make(
            v.JOB_FAILED,
            f"no result: {' and '.join(empty)} ended with exit code 0 and wrote no run directory under --out",
            next="docs/run-contract.md says what a trainer writes",
        )
    compared = comparison.compare(request.out / "twin1", request.out / "twin2")
    return _parted(request, compared) if compared.verdict == v.DRIFT else compared


def _parted(request: GateRequest, compared: Verdict) -> Verdict:
    first = compared.first_divergence
    where = f"at step {first.step} in leaf {first.leaf}" if first else f"in the result: {compared.message}"
    return dataclasses.replace(
        compared,
        verdict=v.GATE_FAILED,
        exit_code=v.EXIT_CODES[v.GATE_FAILED],
        message=f"the gate's twins parted {where}; likely cause: {likely_cause(compared)}",
        next=f"foxrun compare {request.out}/twin1 {request.out}/twin2 shows every leaf that parts; "
        "foxrun check --only NAME tries one difference between the twins alone",
    )


def _part(twin: Twin) -> Part:
    return Part(
        name=twin.name,
        phase="Failed",
        exit_code=twin.exit_code,
        message=twin.message(),
        finished=datetime.fromtimestamp(twin.ended_wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _write_progress(environ: Mapping[str, str], twins: list[Twin], steps: int) -> None:
    """``N/M`` of both twins together, for the engine and the Argo UI."""
    file = environ.get("ARGO_PROGRESS_FILE")
    if file:
        done = sum(min(twin.progress()[0], steps) for twin in twins)
        partial = Path(f"{file}.part")
        partial.write_text(f"{done}/{2 * steps}\n")
        partial.replace(file)


def _in_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def write_termination_log(verdict: Verdict, environ: Mapping[str, str]) -> None:
    """The node's message in the Argo UI: at most 4,096 bytes, from a file that Kubernetes reads."""
    file = Path(environ.get("FOXRUN_TERMINATION_LOG") or "/dev/termination-log")
    if "FOXRUN_TERMINATION_LOG" not in environ and not file.exists():
        return
    text = f"{verdict.message}. Next: {verdict.next}" if verdict.next else verdict.message
    try:
        with file.open("w", encoding="utf-8") as stream:
            stream.write(text.encode()[:4096].decode(errors="ignore"))
    except OSError:
        print(f"note: {file} cannot be written", file=sys.stderr)  # noqa: T201  (the verdict itself stands)

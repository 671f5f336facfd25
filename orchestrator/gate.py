"""The gate: two fresh processes of the trainer, started together, of which the second is hostile, compared exactly.

It costs 50 steps and refuses a build that is not deterministic before any GPU hour is spent. Both processes run side by
side, so the gate takes hardly longer than one of them, and each is the other's load.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from foxrun.files import read_regular
from orchestrator import comparison
from orchestrator.causes import BY_ITSELF, FILES, HOSTILE_TWIN_ALONE, is_file_of_one, likely_cause
from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import FILE_STEP
from orchestrator.compare.verdict import Divergence, Part, Verdict
from orchestrator.errors import UsageError
from orchestrator.hostile import HOSTILITIES
from orchestrator.narrowing import Narrowed, narrow, steps_to
from orchestrator.outcome import describe_part
from orchestrator.printable import printable
from orchestrator.runnable import outside, workflow_of_pod
from orchestrator.settings import did_you_mean
from orchestrator.twin_run import TWINS, GateRequest, Listener, TwinRun, run_twins, trainer_arguments
from orchestrator.twins import Twin

_LOG_END_LINES, _LOG_END_BYTES = 50, 16_384
DEFAULT_TRAINER = ("python", "-m", "trainer")


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
    request: GateRequest,
    environ: Mapping[str, str],
    listener: Listener | None = None,
    *,
    directory: Path | None = None,
    explain: bool = True,
) -> Verdict:
    """Run the twins in ``directory`` (here, where none is given) and say whether they agree.

    Args:
        request: what to run.
        environ: the environment that both twins begin with.
        listener: who hears of progress and of output.
        directory: where the trainer runs.
        explain: when they parted, let twins differ in one thing at a time to find which one it takes.

    Returns:
        ``identical``, ``gate_failed`` (they parted), ``job_failed`` (a twin failed), ``infrastructure`` (they did not
        end in time), ``incomparable`` or ``incomplete``; always with subject ``gate``.

    Raises:
        UsageError: the output directory is taken, or the trainer cannot be started.
    """
    notes = []
    if request.mode == 0:
        notes.append("mode 0 promises nothing, so the gate ran in mode 3, the same arithmetic made exact")
        request = dataclasses.replace(request, mode=3)
    listener, directory = listener or Listener(), directory or Path.cwd()
    ran = run_twins(request, environ, listener, directory=directory)
    verdict = _failed(request, ran, in_pod=environ.get("FOXRUN_LEG") == "gate") or comparison.compare(
        request.out / "twin1", request.out / "twin2"
    )
    if verdict.verdict == v.DRIFT:
        found = narrow(request, environ, listener, verdict, directory=directory) if explain else None
        verdict = _parted(request, environ, verdict, found)
    elif verdict.verdict == v.INCOMPARABLE and any(d.path == "code.tree_run" for d in verdict.manifest_differences):
        verdict = dataclasses.replace(
            verdict,
            message="the files changed while the twins started: they ran different code",
            next="run it again when nothing writes here, or `foxrun check --sha HEAD`, which has files of its own",
        )
    runs = [dataclasses.replace(run, leg=twin) for run, twin in zip(verdict.runs, TWINS, strict=False)]
    return dataclasses.replace(verdict, subject="gate", runs=runs, notes=[*verdict.notes, *notes])


def _failed(request: GateRequest, ran: TwinRun, *, in_pod: bool) -> Verdict | None:
    """Why there is nothing to compare, if that is so."""
    logs = " and ".join(str(request.out / f"{twin.name}.log") for twin in ran.twins)
    if in_pod:  # whose files nobody reaches; `check` prints the ends of the logs there
        logs = f"what they wrote: `foxrun logs {v.WORKFLOW} --node gate`"
    parts = [_part(twin) for twin in ran.failed]
    if parts:
        said = [describe_part(part) for part in parts]
        if len({text.partition(": ")[2] for text in said}) == 1:  # both say the same: once is enough
            said = [" and ".join(part.name for part in parts) + f": {said[0].partition(': ')[2]}"]
        message = f"the trainer failed in the gate: {'; then '.join(said)}"
        if [part.name for part in parts] == ["twin2"]:
            message += f"; {HOSTILE_TWIN_ALONE}"
        return v.make(v.JOB_FAILED, message, parts=parts, next=f"read {logs}")
    if not ran.ended_in_time:
        stood = ", ".join(f"{twin.name} at step {twin.progress()[0]} of {request.steps}" for twin in ran.twins)
        return v.make(
            v.INFRASTRUCTURE,
            f"the gate did not end within {request.timeout_s:g} s: {stood}",
            next=f"read {logs}; if it is slow and not hung, give it a longer --timeout",
        )
    empty = [name for name in TWINS if not _holds_anything(request.out / name)]
    if empty:
        return v.make(
            v.JOB_FAILED,
            f"no result: {' and '.join(empty)} ended with exit code 0 and wrote no run directory under --out",
            next="docs/run-contract.md says what a trainer writes",
        )
    return None


def log_ends(out: Path) -> Iterator[str]:
    """The last lines that each twin wrote, with its name in front."""
    for twin in TWINS:
        with contextlib.suppress(OSError):
            text = read_regular(out / f"{twin}.log", -_LOG_END_BYTES, _LOG_END_BYTES).decode(errors="replace")
            yield from (f"{twin}: {printable(line)}" for line in text.splitlines()[-_LOG_END_LINES:])


def _holds_anything(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:  # the trainer removed it, or put something else there
        return False


def reproduction(request: GateRequest, environ: Mapping[str, str], first: Divergence | None) -> str:
    """The command that makes the same twins part, anywhere, in as few steps as it takes."""
    steps = steps_to(first, request.steps)
    words = ["foxrun", "check"]
    if environ.get("FOXRUN_SHA") and environ.get("FOXRUN_SHA") != "worktree":
        words += ["--sha", environ["FOXRUN_SHA"][:12]]
    words += ["--seed", str(request.seed), "--mode", str(request.mode), "--steps", str(steps)]
    for key, value in sorted(request.parameters.items()):
        words += ["-p", f"{key}={value}"]
    if request.data:
        # A workflow's part knows the input by its place in its pod alone, which is nothing to anybody else.
        in_pod = environ.get("FOXRUN_LEG") == "gate"
        words += ["-p", f"data={request.data.name if in_pod else request.data}"]
    words += ["--", *request.trainer] if request.trainer != DEFAULT_TRAINER else []
    return v.command(*words)


def localisation(request: GateRequest) -> str:
    """The command that finds where and why such twins part."""
    return v.command("foxrun", "localize", "--", *request.trainer, *trainer_arguments(request, "{out}"))


def _parted(request: GateRequest, environ: Mapping[str, str], compared: Verdict, found: Narrowed | None) -> Verdict:
    first = compared.first_divergence
    where = f"at step {first.step} in leaf {first.leaf}" if first else f"in the result: {compared.message}"
    measured = found.cause if found is not None else ""
    if first is not None and first.step == FILE_STEP:
        where = f"in {first.leaf}"
        if is_file_of_one(first):
            where += ", which only one of them wrote"
            measured = FILES if measured == BY_ITSELF else measured
    cause = f"cause: {measured}" if measured else f"likely cause: {likely_cause(compared)}"
    return dataclasses.replace(
        compared,
        verdict=v.GATE_FAILED,
        exit_code=v.EXIT_CODES[v.GATE_FAILED],
        message=f"the gate's twins parted {where}; {cause}",
        next=f"{reproduction(request, environ, first)} makes it again; {localisation(request)} finds the operation, "
        "the cause and a remedy; mend it, and check again",
        notes=[*compared.notes, *([found.note] if found else [])],
    )


def _part(twin: Twin) -> Part:
    return Part(
        name=twin.name,
        phase="Failed",
        exit_code=twin.exit_code,
        message=twin.message(),
        finished=datetime.fromtimestamp(twin.ended_wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def write_termination_log(verdict: Verdict, environ: Mapping[str, str]) -> None:
    """The node's message in the Argo UI: at most 4,096 bytes, from a file that Kubernetes reads."""
    file = Path(environ.get("FOXRUN_TERMINATION_LOG") or "/dev/termination-log")
    if "FOXRUN_TERMINATION_LOG" not in environ and not file.exists():
        return
    then = outside(verdict.next, workflow_of_pod(environ))
    text = verdict.message + (f". Next: {then}" if then else "")
    try:
        with file.open("w", encoding="utf-8") as stream:
            stream.write(text.encode(errors="backslashreplace")[:4096].decode(errors="ignore"))
    except OSError:
        print(f"note: {file} cannot be written", file=sys.stderr)  # noqa: T201  (the verdict itself stands)

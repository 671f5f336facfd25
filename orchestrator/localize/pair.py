"""Runs one pair of traced twins, each in a place of its own, and gives both traces."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import foxrun
from foxrun.files import sha256_file
from orchestrator.errors import NoPlace, UsageError
from orchestrator.hostile import HOSTILITIES, START_DELAY_S, twin_environment
from orchestrator.localize import space, workcopy
from orchestrator.localize.result import DELAYS, PACE
from orchestrator.localize.trace import Trace
from orchestrator.twin_run import TWINS, this_interpreter
from orchestrator.twins import Twin, no_survivors

SITE = Path(foxrun.__file__).parent / "tracing" / "site"
OUT, CHECKPOINT = "{out}", "{checkpoint}"
COMPILED = "compiled"  # below Request.work
PLAN = "plan.json"
POLL_S = 0.05
GRACE_S = 20.0
# Set before a process starts, so the switch is the environment's.
BY_ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    "hash-seed": {"PYTHONHASHSEED": "0"},
    "one-thread": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "deterministic-algorithms": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    "deterministic-algorithms-unfilled": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    "no-tf32": {"NVIDIA_TF32_OVERRIDE": "0"},
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
ALIKE = (DELAYS, PACE)  # kinds of pairs whose twins are hostile to each other in nothing


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is run twice. ``other``: the second twin's command, where it is another one (a resume)."""

    command: tuple[str, ...]
    directory: Path
    environ: Mapping[str, str]
    other: tuple[str, ...] | None = None
    in_place: bool = False
    work: Path = Path()  # where traces lie while they are needed
    title: str = ""
    given: Path | None = None  # what each twin reads as its standard input
    legs: tuple[str, str] | None = None  # what the twins are told that they are (FOXRUN_LEG)
    from_checkpoint: tuple[str, ...] = ()  # goes on from {checkpoint}, which the command writes before that step
    checkpoint_step: int = -1


@dataclass(frozen=True, kw_only=True)
class Kind:
    """In what the twins of a pair differ, and what is done to both."""

    name: str = "hostile"
    hostilities: tuple[str, ...] = tuple(HOSTILITIES)
    threads: tuple[int, int] | None = None
    load: bool = False
    remedies: tuple[str, ...] = ()
    delays: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None)  # as in the plan, for each twin
    pace: tuple[int, int] | None = None  # seeds of how long things seem to take


@dataclass(frozen=True, kw_only=True)
class Window:
    """What is recorded: see Plan in docs/architecture.md."""

    level: str = "steps"
    first_step: int = 0
    last_step: int | None = None
    stop_after: int | None = None
    dump: tuple[tuple[str, int], ...] = ()
    dump_steps: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both twins, ended. ``written``: files that each wrote, by relative path, with their sha256."""

    kind: Kind
    folder: Path
    a: Trace
    b: Trace
    codes: tuple[int | None, int | None]
    messages: tuple[str, str]
    seconds: float
    in_time: bool
    written: tuple[dict[str, str], dict[str, str]] = field(default=({}, {}))
    linked: tuple[str, ...] = ()
    directory: Path | None = None  # where the program's files lie
    whole: bool = False  # it was not told to stop at a step

    @property
    def failed(self) -> list[int]:
        """Which twins ended with another code than 0."""
        return [i for i, code in enumerate(self.codes) if code != 0]


def run_pair(
    request: Request,
    kind: Kind,
    window: Window,
    *,
    deadline: float,
    windows: tuple[Window, Window] | None = None,
    say: Callable[[str, str], None] = lambda twin, line: None,
) -> Pair:
    """Run both twins to their end or to ``deadline`` (of time.monotonic).

    Raises:
        UsageError: the command cannot be started; NoPlace: no space is left, or the working directory is gone.
    """
    with space.needed(request.work):
        folder = Path(tempfile.mkdtemp(prefix="pair-", dir=request.work))
        try:
            workcopy.mark(folder)
            return _ended_pair(request, kind, windows or (window, window), folder, deadline, say)
        except (OSError, NoPlace):  # half a pair says nothing, and may be what fills the disk
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            for twin in TWINS:  # the copies are large; the traces are what is kept
                shutil.rmtree(folder / twin / "root", ignore_errors=True)


def _ended_pair(
    request: Request,
    kind: Kind,
    windows: tuple[Window, Window],
    folder: Path,
    deadline: float,
    say: Callable[[str, str], None],
) -> Pair:
    started = time.monotonic()
    with no_survivors(), _load(kind.load):
        twins, places = _start_both(request, kind, windows, folder)
        in_time = _follow(twins, deadline, say)
    if space.full(folder):  # a program that fails for it has no place to say so, and a trace may be cut
        raise space.none_left(request.work)
    written: tuple[dict[str, str], ...] = ({}, {})
    if not request.in_place:
        both = zip(places, TWINS, strict=True)
        written = tuple(workcopy.written(place, request.directory, since=folder / twin / PLAN) for place, twin in both)
    for found, twin in zip(written, TWINS, strict=True):
        found |= _results(folder / twin / "out")
    return Pair(
        kind=kind,
        folder=folder,
        a=Trace(folder / "twin1" / "trace"),
        b=Trace(folder / "twin2" / "trace"),
        codes=(twins[0].exit_code, twins[1].exit_code),
        messages=(twins[0].message(), twins[1].message()),
        seconds=time.monotonic() - started,
        in_time=in_time,
        written=(written[0], written[1]),
        directory=request.directory,
    )


def _results(out: Path) -> dict[str, str]:
    """What a program left in FOXRUN_OUT that keeps no run contract there: such a run's rows are compared instead."""
    if any(any(out.glob(f"**/{name}")) for name in ("steps.jsonl", "run_manifest.json", "bits.u64")):
        return {}
    files = sorted(path for path in out.rglob("*") if path.is_file() and not path.is_symlink())
    return {f"{OUT}/{path.relative_to(out)}": sha256_file(path) for path in files}


def _start_both(
    request: Request, kind: Kind, windows: tuple[Window, Window], folder: Path
) -> tuple[list[Twin], list[Path]]:
    twins: list[Twin] = []
    places: list[Path] = []
    prepared = []
    workcopy.must_be_there(request.directory)
    for name in TWINS:
        own = folder / name
        (own / "tmp").mkdir(parents=True)
        (own / "out").mkdir()
        if request.in_place:
            places.append(request.directory)
        else:
            places.append(workcopy.copy(request.directory, own).directory)
        prepared.append(own)
    for index, name in enumerate(TWINS):
        command = request.other if index == 1 and request.other else request.command
        if index == 1 and "clock" in kind.hostilities:
            time.sleep(START_DELAY_S)
        twins.append(_start(request, kind, windows[index], name, command, prepared[index], places[index]))
    return twins, places


def _start(
    request: Request, kind: Kind, window: Window, name: str, command: Sequence[str], own: Path, place: Path
) -> Twin:
    out = own / "out"
    plan = own / PLAN
    fields = plan_of(window, own / "trace", kind.remedies)
    if (delays := kind.delays[TWINS.index(name)]) is not None:
        fields["delays"] = dict(delays)
    if kind.pace is not None:
        fields["pace"] = kind.pace[TWINS.index(name)]
    plan.write_text(json.dumps(fields), "utf-8")
    files = {"ARGO_PROGRESS_FILE": own / "progress", "FOXRUN_TERMINATION_LOG": own / "termination-log"}
    base = {
        **request.environ,
        **{key: str(path) for key, path in files.items()},
        "FOXRUN_OUT": str(out),
        "FOXRUN_TRACE": str(plan),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SITE), request.environ.get("PYTHONPATH", "")])),
        "PWD": str(place),
    }
    left_out = {"hash-seed"} & set(kind.remedies) | ({"memory"} if "filled-memory" in kind.remedies else set())
    hostilities = [name for name in kind.hostilities if name not in left_out]
    env = twin_environment(name, base, scratch=own, hostilities=hostilities)
    # What torch.compile made for a twin serves it again in later pairs; the other twin has a cache of its own.
    env.setdefault("TORCHINDUCTOR_CACHE_DIR", str(request.work / COMPILED / name))
    if request.legs is not None:
        # Twins that differ in who waits, or in clocks, must differ in nothing else.
        env["FOXRUN_LEG"] = request.legs[0 if kind.name in ALIKE else TWINS.index(name)]
    if kind.threads is not None:
        env |= dict.fromkeys(THREAD_VARIABLES, str(kind.threads[TWINS.index(name)]))
    for remedy in kind.remedies:
        env |= BY_ENVIRONMENT.get(remedy, {})
    return Twin(
        name=name,
        command=[word.replace(OUT, str(out)) for word in this_interpreter(tuple(command))],
        environment=env,
        directory=place,
        log=own / "log",
        progress_file=files["ARGO_PROGRESS_FILE"],
        message_file=files["FOXRUN_TERMINATION_LOG"],
        given=request.given,
        called="the program",
        advice=f"name what runs it: foxrun localize -- python {shlex.quote(command[0])}",
    )


def plan_of(window: Window, out: Path, remedies: Sequence[str]) -> dict[str, Any]:
    """The Plan as the traced process reads it."""
    return {
        "out": str(out),
        "level": window.level,
        "first_step": window.first_step,
        "last_step": window.last_step,
        "stop_after": window.stop_after,
        "dump": [list(item) for item in window.dump],
        "dump_steps": list(window.dump_steps) if window.dump_steps else None,
        "remedies": list(remedies),
    }


def _follow(twins: Sequence[Twin], deadline: float, say: Callable[[str, str], None]) -> bool:
    """Until both have ended. One that failed gives the other as long again, since it may only wait for it."""
    try:
        while True:
            for twin in twins:
                twin.poll(say)
            if all(twin.ended for twin in twins):
                return True
            now = time.monotonic()
            if now > deadline:
                return False
            failed = [twin.ended_at - twin.started_at for twin in twins if twin.failed]
            if failed and all(twin.ended or now - twin.started_at > 2 * min(failed) + GRACE_S for twin in twins):
                return True
            time.sleep(POLL_S)
    finally:
        for twin in twins:
            twin.kill()
            twin.poll(say)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _load(on: bool) -> Iterator[None]:
    """Inside, twice as many busy processes as processors run beside the twins."""
    busy: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(2 * processors() if on else 0):
            busy.append(subprocess.Popen([sys.executable, "-S", "-c", "while True: sum(range(10**6))"]))
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def prepared(request: Request) -> tuple[Request, list[str]]:
    """The request as it can be run, with notes: in place when the directory is too large to copy, absolute program.

    Raises UsageError when there is nothing to run.
    """
    if not request.command:
        raise UsageError("there is no command to run", remedy="foxrun localize -- python train.py")
    notes: list[str] = []
    uses_out = any(OUT in word for word in request.command)
    in_place = request.in_place or uses_out
    if not in_place:
        try:
            workcopy.measure(request.directory)
        except workcopy.TooLarge as error:
            in_place = True
            notes.append(f"both twins ran in the directory itself: {error}; what they write there they share")
    words = [_absolute(request.command, request.directory)]
    if request.other:
        words.append(_absolute(request.other, request.directory))
    other = words[1] if request.other else None
    return dataclasses.replace(request, command=words[0], other=other, in_place=in_place), notes


def _absolute(command: tuple[str, ...], directory: Path) -> tuple[str, ...]:
    """A program named by a relative path (.venv/bin/python) is that of the original directory."""
    program = command[0]
    if "/" in program and not program.startswith("/") and not program.startswith("~"):
        return (os.path.abspath(directory / program), *command[1:])  # noqa: PTH100  (links of an environment count)
    return command

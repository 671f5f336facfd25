"""What is to be localised: a command, a pair of a workflow, or two runs; all become a command that is run twice."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import JobFailed, UsageError
from orchestrator.localize import interrupts, space, workcopy
from orchestrator.localize.locate import localize as locate
from orchestrator.localize.pair import COMPILED, Request, prepared
from orchestrator.localize.result import Localization
from orchestrator.localize.session import Listener, Options, Session
from orchestrator.localize.space import TEMPORARY
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from orchestrator.places import Places


def localize(
    subject: Sequence[str],
    *,
    settings: Settings,
    options: Options,
    environ: Mapping[str, str],
    directory: Path,
    is_command: bool,
    other: str | None,
    in_place: bool,
    out: Path | None,
    engine: Callable[[], Engine],
    places: Places | None,
    listener: Listener,
) -> Localization:
    """Localise what ``subject`` names.

    Raises:
        UsageError: it names nothing that can be run; JobFailed, DeadlinePassed: see locate.localize.
    """
    if not subject:
        raise UsageError("there is nothing to localise", remedy="foxrun localize -- python train.py, or a pair's NAME")
    if not is_command and (subject[0].endswith(".py") or subject[0].rpartition("/")[2].startswith("python")):
        words = list(subject) if not subject[0].endswith(".py") else ["python", *subject]
        raise UsageError(
            f"{subject[0]!r} is no pair's name: a command stands after --",
            remedy=f"foxrun localize -- {shlex.join(words)}",
        )
    if not is_command:
        from orchestrator.localize.of_pair import localize_pair

        return localize_pair(
            subject, settings=settings, options=options, environ=environ, out=out, engine=engine, places=places,
            listener=listener,
        )  # fmt: skip
    second = None if other is None else _words_of(other)
    _must_start(subject[0], directory, environ, "after --")
    if second is not None:
        _must_start(second[0], directory, environ, "of --other")
    request = Request(
        command=tuple(subject),
        directory=directory,
        environ=environ,
        other=second,
        in_place=in_place,
        title=shlex.join(subject),
    )
    return run(request, options, listener, out, source=_standard_input())


def _words_of(other: str) -> tuple[str, ...]:
    """The command of ``--other``. Raises UsageError."""
    try:
        words = tuple(shlex.split(other))
    except ValueError as error:
        raise UsageError(f"--other {other!r} cannot be read: {error}", remedy="write it as in a shell") from None
    if not words:
        raise UsageError("--other names no command", remedy='for example: --other "python train.py --resume ckpt.pt"')
    return words


def _must_start(program: str, directory: Path, environ: Mapping[str, str], place: str) -> None:
    """Raises UsageError when it is no program, before anything is copied for it."""
    check = f"check the command {place}: foxrun localize -- python train.py"
    file = directory / program
    if program in ("python", "python3"):  # this interpreter stands in for it
        return
    if not program:
        raise UsageError(f"the command {place} is empty", remedy=check)
    if "/" not in program:
        if shutil.which(program, path=environ.get("PATH")) is None:
            what = "there is no such program on PATH and no such file here"
            if file.exists():
                what, check = "it is not on PATH", f"name it as a file: ./{program}"
            raise UsageError(f"{program!r} cannot be started: {what}", remedy=check)
    elif not file.is_file():
        what = "it is a directory" if file.is_dir() else "there is no such file"
        raise UsageError(f"{program!r} cannot be started: {what}", remedy=check)
    elif not os.access(file, os.X_OK):
        raise UsageError(
            f"{program!r} cannot be started: it may not be executed",
            remedy=f"chmod +x {shlex.quote(program)}, or name what runs it, such as: python {shlex.quote(program)}",
        )


def run(
    request: Request, options: Options, listener: Listener, out: Path | None, source: int | None = None
) -> Localization:
    """Localise one command; traces lie in ``out``, or in a temporary directory that goes with the end.

    ``source``: the descriptor of a file that each twin reads as its standard input, from where it stands now.
    """
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out {out} cannot be made: {error.strerror}", remedy="name another place") from None
    work = out.absolute() if out is not None else Path(tempfile.mkdtemp(prefix=TEMPORARY))
    keep = options.keep
    try:
        return locate(_session(request, options, listener, work, source))
    except JobFailed:
        keep = True  # its message names a log
        raise
    finally:
        with interrupts.ignored():  # a second Ctrl-C must not leave half of a temporary directory behind
            shutil.rmtree(work if out is None and not keep else work / COMPILED, ignore_errors=True)


def _session(request: Request, options: Options, listener: Listener, work: Path, source: int | None) -> Session:
    with space.needed(work):
        if not any(work.iterdir()):  # one that holds other things may hold what the program reads
            workcopy.mark(work)
        workcopy.mark(work / COMPILED)
        given = None if source is None else _copied(source, work / "stdin")
    ready, notes = prepared(dataclasses.replace(request, work=work, given=given))
    return Session(request=ready, options=options, listener=listener, notes=list(notes))


def _standard_input() -> int | None:
    """The descriptor of our standard input where it is a file: what comes through a pipe may never end."""
    try:
        descriptor = sys.stdin.fileno()
        return descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except (AttributeError, OSError, ValueError):  # there is none, or a caller put something else in its place
        return None


def _copied(descriptor: int, target: Path) -> Path:
    """What is left of an open file, in a file of its own; the descriptor itself stays where it is."""
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    with target.open("wb") as stream:
        while block := os.pread(descriptor, 1 << 20, at):
            at += stream.write(block)
    return target


def steps_of(text: str) -> tuple[int, int]:
    """``0-3`` or ``2``. Raises UsageError."""
    first, separator, last = text.partition("-")
    try:
        found = (int(first), int(last) if separator else int(first))
    except ValueError:
        found = (1, 0)
    if found[0] > found[1] or found[0] < 0:
        raise UsageError(f"--dump-steps {text!r} is no range of steps", remedy="for example: --dump-steps 0-3")
    return found

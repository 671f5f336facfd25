"""One twin of the gate as a process: its log, its progress, its end, and that nothing of it survives the gate."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foxrun.files import read_regular
from orchestrator.engines.local.nodes import parse_progress
from orchestrator.errors import UsageError
from orchestrator.printable import printable

if TYPE_CHECKING:
    import psutil

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOKS = 10
_LOOK_S = 2.0
_MESSAGE_CHARACTERS = 500
_NO_PROGRAM = ("SyntaxError", "IndentationError", "TabError")
_PLACE = re.compile(r' *File "(?P<file>[^"]+)", line (?P<line>\d+)')
_MESSAGE_BYTES = 8192
_READ_AT_ONCE = 1 << 20
_LONGEST_LINE = 1 << 16


def _die_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def no_survivors() -> Iterator[None]:
    """Inside, what a twin leaves behind becomes a child of this process, daemons too; at the end those are killed."""
    import psutil

    me = psutil.Process()
    before = {child.pid for child in me.children()}
    _adopt_orphans(True)
    try:
        yield
    finally:
        # One that was just being forked is found by the next look.
        for _ in range(_LOOKS):
            left = [child for child in me.children() if child.pid not in before]
            if not left:
                break
            for orphan in [*left, *(child for parent in left for child in _descendants(parent))]:
                with contextlib.suppress(psutil.Error):
                    orphan.kill()
            psutil.wait_procs(left, timeout=_LOOK_S)
        _adopt_orphans(False)


def _adopt_orphans(on: bool) -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    import psutil

    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


class Twin:
    """A started trainer. Times are of ``time.monotonic()`` in seconds, ``ended_wall`` of ``time.time()``.

    ``given``: the file that it reads as its standard input, from the start; without one there is nothing to read.
    ``called``, ``advice``: what it is, and what to do, in the error of one that cannot be started.
    """

    def __init__(
        self,
        *,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        log: Path,
        progress_file: Path,
        message_file: Path,
        given: Path | None = None,
        called: str = "the trainer",
        advice: str = "give its command after --, for example: foxrun check -- python -m trainer",
    ) -> None:
        self.name = name
        self.ended = False
        self.exit_code: int | None = None
        self.started_at, self.ended_at, self.ended_wall = time.monotonic(), 0.0, 0.0
        self._progress_file, self._message_file, self._log = progress_file, message_file, log
        self._last_progress, self._rest, self._read_to, self._message = (0, 0), b"", 0, ""
        self._killed = False
        try:
            with log.open("wb") as stream, (given or Path(os.devnull)).open("rb") as source:
                self._process = subprocess.Popen(
                    list(command),
                    env=dict(environment),
                    cwd=directory,
                    stdin=source,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    preexec_fn=_die_with_parent,
                )
        except OSError as error:
            raise UsageError(
                f"{called} cannot be started: {shlex.quote(command[0])}: {error.strerror}", remedy=advice
            ) from None

    @property
    def failed(self) -> bool:
        """Whether it ended by itself with another exit code than 0."""
        return self.ended and not self._killed and self.exit_code != 0

    def poll(self, line: Callable[[str, str], None]) -> None:
        """Look at the process; hand new lines of its output on."""
        if not self.ended and (code := self._process.poll()) is not None:
            self._end(code)
        while new := self._written():
            self._read_to += len(new)
            *complete, self._rest = (self._rest + new).split(b"\n")
            if len(self._rest) > _LONGEST_LINE:
                complete, self._rest = [*complete, self._rest], b""
            for text in complete:
                line(self.name, text.decode(errors="replace").rstrip("\r"))
            if not self.ended and len(new) == _READ_AT_ONCE:
                return  # one that writes faster than this reads must not keep the other twin from being looked at
        if self.ended and self._rest:
            rest, self._rest = self._rest, b""
            line(self.name, rest.decode(errors="replace").rstrip("\r"))

    def _written(self) -> bytes:
        with contextlib.suppress(OSError):  # a trainer may have removed it
            return read_regular(self._log, self._read_to, _READ_AT_ONCE)
        return b""

    def _end(self, code: int) -> None:
        self.ended, self.ended_at, self.ended_wall = True, time.monotonic(), time.time()
        self.exit_code = code if code >= 0 else 128 - code
        self.progress()
        with contextlib.suppress(OSError):
            self._message = read_regular(self._message_file, limit=_MESSAGE_BYTES).decode(errors="replace")

    def progress(self) -> tuple[int, int]:
        """Steps done and steps in all, as the trainer last wrote them; (0, 0) before."""
        with contextlib.suppress(OSError):
            text = read_regular(self._progress_file, limit=64).decode("ascii", "replace")
            self._last_progress = parse_progress(text) or self._last_progress
        return self._last_progress

    def message(self) -> str:
        """Why it failed, in one line: what it wrote for its node, else the last line of its log."""
        text = self._message.strip()
        if not text and (self.exit_code or 0) <= 128:  # one that was killed had no time to say why
            tail: list[str] = []
            with contextlib.suppress(OSError):
                tail = read_regular(self._log, -_MESSAGE_BYTES, _MESSAGE_BYTES).decode(errors="replace").splitlines()
            text = next((entry for entry in reversed(tail) if entry.strip()), "")
            place = next((found for entry in reversed(tail) if (found := _PLACE.match(entry))), None)
            if place is not None and text.startswith(_NO_PROGRAM):  # nothing else says where
                text += f" ({place['file'].rpartition('/')[2]}, line {place['line']})"
        return printable(" ".join(text.split())[:_MESSAGE_CHARACTERS])

    def kill(self) -> None:
        """End it and every process that it started; nothing happens when it has ended."""
        if self.ended:
            return
        import psutil

        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            me = psutil.Process(self._process.pid)
            family = [me, *me.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        code = self._process.wait()
        self._killed = True
        self._end(code)

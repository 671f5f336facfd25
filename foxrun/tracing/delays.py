"""Delays before lines of the program, on one side of its threads and processes.

A correct program stays the same however long one of its threads waits before a line; a race ends as the delays have
it. Lines are seen by sys.settrace, so no function needs to be known. Nothing waits before several of them run. On a
CUDA device streams wait in the same way: what a line asks for comes late, or the host does.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import FrameType
from typing import Any

from foxrun.tracing import processes, recorder, where

MAIN, ODD, EVEN = "main", "odd", "even"
# The default stream of the device; all others, while the host waits before each line for the default one.
DEFAULT_STREAM, OTHER_STREAMS = "default-stream", "other-streams"
HITS = 2  # of one line in one step
LONGEST_S = 8.0  # of one thread, all delays together
LONGEST_FOR_STEPS_S = 30.0  # the training goes on meanwhile, so that nobody waits for it
CYCLES = 2_000_000_000  # of a device in a second, about: torch.cuda._sleep counts its clock
POLL_S, STILL_S = 0.02, 0.5  # a main thread that stands at one instruction for so long waits for somebody

_sleep, _now = time.sleep, time.monotonic
_started = 0


class Delays:
    """``sides``: whose lines wait, from ``first_step`` on; ``lines``: those alone (``train.py:31``), or all; ``steps``:
    so many steps a thread of the main process waits for, instead of seconds, while the main thread makes any."""

    def __init__(
        self,
        sides: tuple[str, ...],
        seconds: float,
        lines: frozenset[str] | None = None,
        first_step: int = 0,
        steps: int = 0,
    ) -> None:
        self.sides, self.seconds, self.lines, self.first_step, self.steps = sides, seconds, lines, first_step, steps
        self._on_device = DEFAULT_STREAM in sides or OTHER_STREAMS in sides
        self._own = _Own()
        self._texts: dict[tuple[str, int], str] = {}

    def watch(self) -> None:
        """From now on, in this thread and in all that the program starts."""
        threading.settrace(self.call)
        sys.settrace(self.call)

    def call(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A function begins; those of the program are followed line by line."""
        return self.line if where.kind_of(frame.f_code.co_filename) is where.PROGRAM else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A line is about to run."""
        if event == "line":
            active = recorder.active
            if active is None or active.busy or active.ended:
                return self.line
            if not self._on_device and (not several() or side() not in self.sides):
                return self.line
            if active.step >= self.first_step and (self.lines is None or self._text(frame) in self.lines):
                self._wait(active.step, frame)
        return self.line

    def _text(self, frame: FrameType) -> str:
        key = (frame.f_code.co_filename, frame.f_lineno)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = f"{where.relative(key[0])}:{key[1]}"
        return text

    def _wait(self, step: int, frame: FrameType) -> None:
        own = self._own
        if own.step != step:
            own.step, own.hits = step, {}
        key = (frame.f_code.co_filename, frame.f_lineno)
        hits = own.hits.get(key, 0)
        if hits >= HITS or own.waited >= (LONGEST_FOR_STEPS_S if self.steps else LONGEST_S):
            return
        own.hits[key] = hits + 1
        if self._on_device:
            own.waited += self._device_waits()
            return
        began = _now()
        if self.steps and side() != MAIN and not processes.is_child():
            _wait_for(step + self.steps, LONGEST_FOR_STEPS_S - own.waited)
        else:
            _sleep(self.seconds)
        own.waited += _now() - began

    def _device_waits(self) -> float:
        """Let the current stream of the device wait, or the host for it; in seconds, 0 where no device is used."""
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if cuda is None or not cuda.is_initialized() or cuda.is_current_stream_capturing():
            return 0.0
        with recorder.active.quiet() if recorder.active is not None else contextlib.nullcontext():
            default = cuda.current_stream() == cuda.default_stream()
            if not default and OTHER_STREAMS not in self.sides:
                return 0.0
            if default and DEFAULT_STREAM not in self.sides:
                began = _now()
                cuda.current_stream().synchronize()
                return _now() - began
            cuda._sleep(int(self.seconds * CYCLES))
            return self.seconds


def _wait_for(step: int, longest: float) -> None:
    """Until the main thread has made that step, waits itself, or the time is over."""
    main = threading.main_thread().ident
    until, still, stood = _now() + longest, 0.0, None
    while _now() < until and still < STILL_S:
        active = recorder.active
        if active is None or active.ended or active.step >= step:
            return
        _sleep(POLL_S)
        frame = sys._current_frames().get(main or 0)
        here = None if frame is None else (id(frame), frame.f_lasti, active.step)
        still, stood = (still + POLL_S, stood) if here == stood else (0.0, here)


class _Own(threading.local):
    """What a thread has waited."""

    def __init__(self) -> None:
        self.step = -1
        self.hits: dict[tuple[str, int], int] = {}
        self.waited = 0.0


def several() -> bool:
    """Whether other threads or processes of the program run beside this thread."""
    return processes.is_child() or threading.active_count() > 1 or processes.children() > 0


def side() -> str:
    """main, or by its number in the order of starting: odd or even. A child's threads have the child's side."""
    if processes.is_child():
        return ODD if processes.number() % 2 else EVEN
    number = getattr(threading.current_thread(), "_foxrun_start", 0)
    return MAIN if number == 0 else ODD if number % 2 else EVEN


def number_threads() -> None:
    """Give each thread that the program starts its number; how many there were is written at the end."""
    start = threading.Thread.start

    def numbered(self: threading.Thread) -> None:
        global _started
        _started += 1
        self._foxrun_start = _started  # type: ignore[attr-defined]
        if recorder.active is not None:
            recorder.active.threads_started = _started
        start(self)

    threading.Thread.start = numbered  # type: ignore[method-assign]

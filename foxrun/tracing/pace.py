"""Another pace for the clocks that a program measures by: how long something takes must not decide what is computed.

The program's own readings of time.perf_counter and its like go on by more than the time that passed, or by less, by a
factor that changes from reading to reading; so do timeit's, and what CUDA events say lies between them. Clocks never go
back. In one of two twins they are fast and in the other slow: what happens once some time has gone by happens in a
traced program, which is slow, at every step of both where clocks are merely fast.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from hashlib import blake2b
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

from foxrun.tracing import imports, patching, where

CLOCKS = ("perf_counter", "monotonic", "process_time", "thread_time", "time")
SPREAD = 8.0  # between the least and the greatest factor
# A slow clock stands nearly still while it is read so often, and then goes on: who waits for a time must not wait long
STILL, READINGS = 1 / 64, 64
LATER = 1 / 2


def watch(seed: int) -> None:
    """From now on, by the factors of ``seed``: clocks are slow with an odd one, fast with an even one."""
    readings, start = count(), seed.to_bytes(8, "little")
    slow = seed % 2

    def factor() -> float:
        # No generator of Python's: those are the program's, and their draws are recorded.
        reading = next(readings)
        digest = blake2b(start + reading.to_bytes(8, "little"), digest_size=4).digest()
        least = 1.0 if not slow else STILL if reading < READINGS else LATER / SPREAD
        return float(least * SPREAD ** (int.from_bytes(digest, "little") / 2**32))

    def clocks(time: ModuleType) -> None:
        for name in CLOCKS:
            # One clock for all threads, as timestamps are handed on; each thread has its own thread_time.
            state: Any = threading.local() if name == "thread_time" else SimpleNamespace()
            for full, whole in ((name, False), (f"{name}_ns", True)):
                if hasattr(time, full):
                    patching.function(time, full, functools.partial(_paced, factor=factor, whole=whole, state=state))

    def events(cuda: ModuleType) -> None:
        patching.method(cuda.Event, "elapsed_time", lambda original: lambda *args: original(*args) * factor())

    imports.when_imported("time", clocks)
    imports.when_imported("torch.cuda", events)


def _paced(original: Callable[[], Any], factor: Callable[[], float], whole: bool, state: Any) -> Callable[[], Any]:
    """``state``: how far the clock is ahead, in seconds, and when that was; seconds and nanoseconds share it."""
    unit = 1e9 if whole else 1.0
    held = [threading.Lock()]
    state.lock = getattr(state, "lock", held)
    lock: list[threading.Lock] = state.lock
    os.register_at_fork(after_in_child=lambda: lock.__setitem__(0, threading.Lock()))

    def reading() -> Any:
        if not _measures():
            return original()
        with lock[0]:
            now = original()
            seconds = now / unit
            last, ahead = getattr(state, "last", seconds), getattr(state, "ahead", 0.0)
            state.last = max(last, seconds)
            state.ahead = ahead = ahead + (state.last - last) * (factor() - 1.0)
        return now + int(ahead * unit) if whole else now + ahead

    return reading


def _measures() -> bool:
    """Whether the program itself, or timeit for it, reads the clock: libraries wait and time out by the real one."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(where.OURS) and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_code.co_filename
    if where.is_timer(name):
        return True
    return where.kind_of(name) == where.PROGRAM and not any(site in name for site in where.SITES)

"""Another pace for the clocks that a program measures by: how long something takes must not decide what is computed.

The program's own readings of time.perf_counter and its like go on by more than the time that passed, by a factor that
changes from reading to reading; so do timeit's, and what CUDA events say lies between them. Clocks never go back.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from hashlib import blake2b
from itertools import count
from types import ModuleType
from typing import Any

from foxrun.tracing import imports, patching, where

CLOCKS = ("perf_counter", "monotonic", "process_time", "thread_time", "time")
MOST = 8.0  # times the time that passed


def watch(seed: int) -> None:
    """From now on, by the factors of ``seed``."""
    readings, start = count(), seed.to_bytes(8, "little")

    def factor() -> float:
        # No generator of Python's: those are the program's, and their draws are recorded.
        digest = blake2b(start + next(readings).to_bytes(8, "little"), digest_size=4).digest()
        return float(MOST ** (int.from_bytes(digest, "little") / 2**32))

    def around(whole: bool) -> Callable[[Any], Any]:
        return lambda original: _paced(original, factor, whole)

    def clocks(time: ModuleType) -> None:
        for name in CLOCKS:
            for full, whole in ((name, False), (f"{name}_ns", True)):
                if hasattr(time, full):
                    patching.function(time, full, around(whole))

    def events(cuda: ModuleType) -> None:
        patching.method(cuda.Event, "elapsed_time", lambda original: lambda *args: original(*args) * factor())

    imports.when_imported("time", clocks)
    imports.when_imported("torch.cuda", events)


def _paced(original: Callable[[], Any], factor: Callable[[], float], whole: bool) -> Callable[[], Any]:
    state = threading.local()  # process and thread clocks differ from thread to thread

    def reading() -> Any:
        now = original()
        if not _measures():
            return now
        last, ahead = getattr(state, "last", now), getattr(state, "ahead", 0.0)
        state.last, state.ahead = now, ahead + (now - last) * (factor() - 1.0)
        return now + int(state.ahead) if whole else now + state.ahead

    return reading


def _measures() -> bool:
    """Whether the program itself, or timeit for it, reads the clock: libraries wait and time out by the real one."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(where.OURS) and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_code.co_filename
    if name.startswith("<timeit") or name.endswith("timeit.py"):
        return True
    return where.kind_of(name) == where.PROGRAM and not any(site in name for site in where.SITES)

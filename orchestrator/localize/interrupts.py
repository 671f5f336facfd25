"""Ctrl-C and SIGTERM: the first ends what runs; one that follows at once is the same wish, and loses no result."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

BOTH = (signal.SIGINT, signal.SIGTERM)
SAME_WISH_S = 3.0  # longer than twins take to end and what was found takes to be printed


class _First:
    def __init__(self) -> None:
        self._at: float | None = None

    @property
    def came(self) -> bool:
        return self._at is not None

    def __call__(self, signum: int, frame: object) -> None:
        if self._at is None or time.monotonic() - self._at > SAME_WISH_S:
            self._at = time.monotonic()
            raise KeyboardInterrupt


@contextlib.contextmanager
def taken_once() -> Iterator[None]:
    """Inside, either raises KeyboardInterrupt, and not again for SAME_WISH_S.

    Once one came, this process is about to end: from then on both are ignored, so that its exit code stays.
    """
    first = _First()
    with _handled(first) as before:
        try:
            yield
        finally:
            if first.came:
                before.update(dict.fromkeys(before, signal.SIG_IGN))


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Inside, neither does anything."""
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(by: Callable[[int, object], None] | signal.Handlers) -> Iterator[dict[signal.Signals, Any]]:
    """Inside, both are handled so; gives how they are handled afterwards."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():  # another may not say how
        before = {number: signal.getsignal(number) for number in BOTH}
    # What whoever started this process had ignored (nohup, a job behind) stays so.
    before = {number: how for number, how in before.items() if how not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, by)
    try:
        yield before
    finally:
        for number, how in before.items():
            signal.signal(number, how)

"""Ending on SIGTERM and SIGINT: at once, but never in the middle of a write to the run directory."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_REASONS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}


class Stopped(BaseException):
    """A signal asked the process to end. Not an Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(EXIT_REASONS[signal.Signals(number)])
        self.exit_code = 128 + number


class Stopping:
    """Raises :class:`Stopped` when a signal comes; inside :meth:`held`, at its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._pending: int | None = None

    def install(self) -> None:
        """Take over the signals; only the main thread may."""
        for number in EXIT_REASONS:
            signal.signal(number, self._arrived)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold a signal back until the block ends."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._depth == 0 and self._pending is not None:
            raise Stopped(self._pending)

    def ignore(self) -> None:
        """From now on the process only finishes: another signal changes nothing."""
        self._depth += 1

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._pending is None:
            self._pending = number
            if self._depth == 0:
                raise Stopped(number)

"""How long what goes wrong is put up with: pauses that grow, a grace for refused rights, and always a deadline."""

from __future__ import annotations

import random
import time

from orchestrator.engines.argo.transport import FIRST_PAUSE_S, LONGEST_PAUSE_S, Forbidden, Refused
from orchestrator.errors import DeadlinePassed, InfrastructureError

# A token that has expired is replaced by whoever issues it within seconds; a wrong one never is. And an API server that
# has just started refuses what is allowed until it has read its Roles (403, "role ... not found").
REFUSED_S = 60.0


class Patience:
    """Counts one spell of trouble; ``well`` ends it."""

    def __init__(self, what: str, deadline_s: float) -> None:
        self.what = what
        self.deadline_s = deadline_s
        self.give_up_at = time.monotonic() + deadline_s
        self.last: InfrastructureError | None = None
        self._pause = FIRST_PAUSE_S
        self._refused_since: float | None = None
        self._was_well = False

    def left(self) -> float:
        """Seconds until the deadline. Raises DeadlinePassed, with the trouble there was last."""
        left = self.give_up_at - time.monotonic()
        if left <= 0:
            trouble = f"; the last trouble was: {self.last}" if self.last else ""
            raise DeadlinePassed(
                f"{self.what} is not completed after {self.deadline_s:g} s; it goes on{trouble}",
                remedy="foxrun watch follows it again, foxrun stop ends it",
            )
        return left

    def well(self) -> None:
        """The server has answered."""
        self._was_well = True
        self.last = None
        self._pause = FIRST_PAUSE_S
        self._refused_since = None

    def endure(self, error: InfrastructureError) -> None:
        """Wait before the next try. Raises ``error`` itself when another try makes no sense."""
        self.last = error
        if isinstance(error, Forbidden) and not self._was_well:
            raise error
        if isinstance(error, Refused | Forbidden):
            now = time.monotonic()
            self._refused_since = self._refused_since or now
            if now - self._refused_since > REFUSED_S:
                raise error
        self.pause()

    def pause(self) -> None:
        """Wait: longer each time, and not in step with everybody else who waits for the same server."""
        time.sleep(min(self._pause * random.uniform(0.75, 1.25), self.left()))  # noqa: S311  (no secret)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)

"""What ``foxrun.trace`` and ``foxrun.step`` do in a traced process; elsewhere they return at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foxrun.tracing import recorder


def trace(model: Any, optimizer: Any, named: dict[str, Any]) -> None:
    """Name a model (or a dict of them), its optimizer (or a list) and the state that crosses steps."""
    from foxrun.tracing import start

    site, active = start.site, recorder.active
    if site is None or active is None or active.ended:
        return
    try:
        with active.quiet():
            site.steps.named(model, optimizer, named)
    except Exception as error:
        active.trouble(error)


def step(n: int | None, flush: Callable[[], None] | None = None) -> None:
    """Step ``n`` is complete; ``flush`` writes what the program gathered, should it be ended here."""
    from foxrun.tracing import start

    active = recorder.active
    if start.site is None or active is None or active.ended:
        return
    try:
        active.before_stop = flush
        start.site.steps.mark(n)
    except Exception as error:
        active.trouble(error)

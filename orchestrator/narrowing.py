"""When the twins of a gate parted: which of their differences does it take? Measured, by halving them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import comparison
from orchestrator.causes import BY_HOSTILITY, BY_ITSELF
from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import FILE_STEP
from orchestrator.compare.verdict import Divergence, Verdict
from orchestrator.twin_run import GateRequest, Listener, run_twins

# A trial takes only as many steps as it took to part, so most of its time is the start of two processes.
BUDGET_S = 180.0
# The likeliest first, so that halving meets them early.
ORDER = ("memory", "listing-order", "hash-seed", "clock", "allocator", "directories", "environment-order")


@dataclass(frozen=True, kw_only=True)
class Narrowed:
    """The cause as far as it was measured, empty when nothing was; and what was tried, with its result."""

    cause: str
    note: str


class _Unclear(Exception):
    """A trial failed or took too long, so that nothing more can be said."""


def narrow(
    request: GateRequest, environ: Mapping[str, str], listener: Listener, parted: Verdict, *, directory: Path
) -> Narrowed:
    """Let twins differ in nothing, then in half of what they may differ in, and so on; ends after BUDGET_S seconds.

    One trial each: a trial in which the twins agree proves nothing, one in which they part does. So one cause is named
    only when the twins parted with it alone, and several when they parted with these and the search got no further.
    """
    first = parted.first_divergence
    steps = steps_to(first, request.steps)
    give_up_at = time.monotonic() + BUDGET_S
    tried: list[str] = []
    least: list[str] = []  # the fewest differences with which they parted

    def part_with(names: Sequence[str]) -> bool:
        shown = ", ".join(names) or "nothing that can be set"
        listener.stage(f"the twins parted; do they also when they differ in {shown} alone?")
        out = request.out / "narrowed" / ("+".join(names) or "nothing")
        trial = dataclasses.replace(
            request, out=out, steps=steps, timeout_s=give_up_at - time.monotonic(), hostilities=tuple(names)
        )
        if trial.timeout_s <= 0:
            raise _Unclear
        ran = run_twins(trial, environ, Listener(), directory=directory)
        if ran.failed or not ran.ended_in_time:
            raise _Unclear
        result = comparison.compare(out / "twin1", out / "twin2").verdict
        if result not in (v.DRIFT, v.IDENTICAL):
            raise _Unclear
        tried.append(f"{shown}: {'parted' if result == v.DRIFT else 'agreed'}")
        if result == v.DRIFT and names:
            least[:] = names
        return result == v.DRIFT

    try:
        cause = _search([name for name in ORDER if name in request.hostilities], part_with)
    except _Unclear:
        cause = ""
    if not cause and least:
        cause = "one or more of these: " + "; ".join(BY_HOSTILITY[name] for name in least)
    trials = f"{len(tried)} trial{'s' if len(tried) != 1 else ''} of twins that differ in less"
    return Narrowed(cause=cause, note=f"{trials} ({'; '.join(tried)})" if tried else "no trial of the cause ended")


def steps_to(first: Divergence | None, steps: int) -> int:
    """How few of ``steps`` it takes to part there again: all, where a whole file is what differs."""
    return steps if first is None or first.step == FILE_STEP else max(1, min(steps, first.row + 2))


def _search(names: Sequence[str], part_with: Callable[[Sequence[str]], bool]) -> str:
    """The text of the cause: nothing, or the one name that is left after halving and parts the twins alone."""
    if part_with(()):
        return BY_ITSELF
    candidates, seen = list(names), True
    while len(candidates) > 1:
        half, rest = candidates[: len(candidates) // 2], candidates[len(candidates) // 2 :]
        seen = part_with(half)
        candidates = half if seen else rest
    if not candidates or not (seen or part_with(candidates)):
        return ""  # it takes several together, or is too rare for one trial
    return BY_HOSTILITY[candidates[0]]

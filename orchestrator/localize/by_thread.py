"""Streams of several threads whose turns differ, walked thread by thread. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator.localize import slices
from orchestrator.localize.origins import Aligned, Origin
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, REORDERED
from orchestrator.localize.sequences import said
from orchestrator.localize.trace import Event

if TYPE_CHECKING:
    from orchestrator.localize.events import Walk

MAIN_THREAD = 0


def through(walk: Walk, align: Callable[..., Aligned]) -> Origin | None:
    """Pairs of each thread's own sequence, in the order in which the first twin ran them.

    Which worker takes which task is a race that harms nobody, so a worker whose work is another one in both twins is
    left there; it is the origin only where the main thread says nothing better.
    """
    left, right = walk.left, walk.right
    matched: list[tuple[Event, Event]] = []
    breaks: dict[int, tuple[list[Event], list[Event], int]] = {}
    for thread in sorted({event.thread for event in left}):
        a = [event for event in left if event.thread == thread]
        b = [event for event in right if event.thread == thread]
        equal = 0
        while equal < min(len(a), len(b)) and a[equal].key == b[equal].key:
            equal += 1
        matched += zip(a[:equal], b[:equal], strict=True)
        if equal < min(len(a), len(b)):
            breaks[thread] = (a, b, equal)
    main_breaks = breaks[MAIN_THREAD][0][breaks[MAIN_THREAD][2]].i if MAIN_THREAD in breaks else len(left) + left[-1].i
    known = {said(event) for event in left}, {said(event) for event in right}
    deferred: list[Origin] = []
    harmless: list[Origin] = []
    given_up: set[int] = set()
    for ea, eb in sorted(matched, key=lambda pair: pair[0].i):
        if ea.thread in given_up:
            continue
        if main_breaks < ea.i and ea.thread != MAIN_THREAD and not (deferred or harmless):
            break  # the main thread did something else before: what a worker then reads is what that one left
        origin = walk.pair(ea, eb)
        if origin is None:
            continue
        # Of a worker that is at another step, what it reads is another task's, too.
        elsewhere = ea.step != eb.step and not origin.label.startswith("generator")
        another_task = said(origin.a) in known[1] and said(origin.b) in known[0]
        if ea.thread != MAIN_THREAD and (origin.how in (REORDERED, CONTROL_FLOW) or elsewhere or another_task):
            (harmless if another_task else deferred).append(origin)
            given_up.add(ea.thread)
            continue
        elsewhere_made = origin.outside or (origin.how == REORDERED and len(origin.chain) == 2)
        if elsewhere_made and (inner := slices.made_otherwise(origin, left, right, align)) is not None:
            return inner
        vague = origin.outside or origin.how == CHANGED_BEHIND
        return deferred[0] if deferred and vague and not origin.label.startswith("generator") else origin
    if deferred:
        return deferred[0]
    if harmless and MAIN_THREAD not in breaks:  # what the main thread does otherwise says more than a task's turn
        return harmless[0]
    for a, b, equal in breaks.values():
        return walk.other_sequence(a, equal, b, equal)
    return None

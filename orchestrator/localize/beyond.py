"""Writes of native code past the memory that it was given: what is read wrong later is their doing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from foxrun.tracing.words import PAST, PAST_VIEW, SURELY
from orchestrator.localize.origins import Origin
from orchestrator.localize.result import CHANGED_BEHIND, HOST_VALUE, OUTPUTS_DIFFER
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Event, Process, event_of

CRASH, MEMORY = "(crash)", "(memory)"


def is_past(event: Event) -> bool:
    """Whether an event is such a write."""
    return event.kind == "kernel" and event.value.startswith((PAST, PAST_VIEW))


def last(stream: Sequence[Event], before: int) -> Event | None:
    """The last such write of one twin up to an event."""
    return next((e for e in reversed(stream) if e.i <= before and is_past(e)), None)


def alone(left: Sequence[Event], right: Sequence[Event], step: int | None, process: str) -> Origin | None:
    """A write in the very step that parts, where no operation differs."""
    writes = [e for e in (*left, *right) if is_past(e) and e.step == step]
    if not writes:
        return None
    return Origin(a=writes[0], b=writes[-1], how=CHANGED_BEHIND, detail=writes[0].value, process=process)


def blamed(origin: Origin | None, left: Sequence[Event], right: Sequence[Event]) -> Origin | None:
    """The write in the place of the origin, where that is memory which no operation explains."""
    if origin is None:
        return None
    writes = [e for e in (last(left, origin.a.i), last(right, origin.b.i)) if e is not None]
    if not writes:
        return origin
    write = writes[0]
    explained = origin.how not in (CHANGED_BEHIND, HOST_VALUE) and not (origin.how == OUTPUTS_DIFFER and origin.outside)
    if explained and origin.a.key != write.key:
        return origin
    read = f"; {origin.a.name} at {origin.a.where or '?'} is the first to read other bytes"
    detail = write.value + (read if origin.a.key != write.key else "")
    return dataclasses.replace(
        origin, a=write, b=writes[-1], how=CHANGED_BEHIND, detail=detail, reader=origin.a, outside=False, label=""
    )


def surely(process: Process) -> StepsFound | None:
    """A write that leaves its memory in a twin that agrees all the same: what lies there today harms nobody.

    The first of that line, though it may be sure of a later one alone: what lies behind differs from call to call.
    """
    lines = (line for line in process.event_lines() if PAST.encode() in line)
    writes = [e for e in map(event_of, lines) if is_past(e) and e.value.startswith(PAST)]
    sure = next((e for e in writes if e.value.startswith(SURELY)), None)
    if sure is None:
        return None
    event = next(e for e in writes if (e.name, e.where) == (sure.name, sure.where))
    note = "the twins agree, and yet one of them writes past its memory"
    return StepsFound(step=event.step, leaf=MEMORY, component="data", kind="state", note=note)


def before_the_crash(process: Process) -> StepsFound | None:
    """Where a process that died had written past its memory; None where none of its events says so."""
    for event in process.events():
        if is_past(event):
            return StepsFound(
                step=event.step, leaf=CRASH, component="state", kind="state", note="a twin crashed afterwards"
            )
    return None

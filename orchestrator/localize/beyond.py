"""Writes of native code past the memory that it was given: what is read wrong later is their doing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from orchestrator.localize.origins import Origin
from orchestrator.localize.result import CHANGED_BEHIND, HOST_VALUE, OUTPUTS_DIFFER
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Event, Process

PAST = "writes past its memory"  # how foxrun.tracing.native says it


def first(stream: Sequence[Event]) -> Event | None:
    """The first such write of one twin."""
    return next((e for e in stream if e.kind == "kernel" and e.value.startswith(PAST)), None)


def blamed(origin: Origin | None, left: Sequence[Event], right: Sequence[Event], process: str) -> Origin | None:
    """The write in the place of the origin, where that is memory which no operation explains."""
    writes = [e for e in (first(left), first(right)) if e is not None]
    if not writes:
        return origin
    write = writes[0]
    if origin is None:
        return Origin(a=write, b=writes[-1], how=CHANGED_BEHIND, detail=write.value, process=process)
    explained = origin.how not in (CHANGED_BEHIND, HOST_VALUE) and not (origin.how == OUTPUTS_DIFFER and origin.outside)
    if write.i > origin.a.i or (explained and origin.a.key != write.key):
        return origin
    read = f"; {origin.a.name} at {origin.a.where or '?'} is the first to read other bytes"
    detail = write.value + (read if origin.a.key != write.key else "")
    return dataclasses.replace(
        origin, a=write, b=writes[-1], how=CHANGED_BEHIND, detail=detail, reader=origin.a, outside=False, label=""
    )


def before_the_crash(process: Process) -> StepsFound | None:
    """Where a process that died had written past its memory; None where none of its events says so."""
    for event in process.events():
        if event.kind == "kernel" and event.value.startswith(PAST):
            return StepsFound(
                step=event.step, leaf="(crash)", component="state", kind="state", note="a twin crashed afterwards"
            )
    return None

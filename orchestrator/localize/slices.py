"""What an operation's input was made of: the events behind it, of whatever threads, held side by side. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from orchestrator.localize.origins import Aligned, Origin
from orchestrator.localize.result import CONTROL_FLOW, OUTPUTS_DIFFER
from orchestrator.localize.trace import Event

MOST = 4000


def behind(event: Event, label: str, stream: Sequence[Event]) -> list[Event]:
    """All that the input ``label`` of ``event`` was made of, in the order in which it ran, as if in one thread."""
    by_index = {e.i: e for e in stream}
    found: dict[int, Event] = {}
    todo = [source for name, _, source in event.ins if name == label]
    while todo and len(found) < MOST:
        index = todo.pop()
        known = by_index.get(index)
        if known is None or index in found or index >= event.i:
            continue
        found[index] = dataclasses.replace(known, thread=0)
        todo += [source for name, _, source in known.ins if not name.startswith("generator")]
    return [found[index] for index in sorted(found)]


def _made(event: Event, stream: Sequence[Event]) -> bool:
    """Whether some operation of the stream gave all that this one gave."""
    given = {e for one in stream if one.name == event.name for _, e in one.outs}
    return bool(event.outs) and all(fingerprint in given for _, fingerprint in event.outs)


def made_otherwise(
    origin: Origin, left: Sequence[Event], right: Sequence[Event], align: Callable[..., Aligned]
) -> Origin | None:
    """Where that which the origin reads was computed in another way; None where both twins computed it alike, of other
    inputs or of the same."""
    if not origin.label:
        return None
    a, b = behind(origin.a, origin.label, left), behind(origin.b, origin.label, right)
    if not a or not b:
        return None
    inner = align(a, b, process=origin.process, cut=True).origin
    if inner is None or inner.outside or inner.how not in (CONTROL_FLOW, OUTPUTS_DIFFER):
        return None
    if inner.how == CONTROL_FLOW and _made(inner.a, right) and _made(inner.b, left):
        return None  # both twins made both: it is another one that was taken
    threads = {e.i: e.thread for e in left}, {e.i: e.thread for e in right}
    inner = dataclasses.replace(
        inner,
        a=dataclasses.replace(inner.a, thread=threads[0].get(inner.a.i, 0)),
        b=dataclasses.replace(inner.b, thread=threads[1].get(inner.b.i, 0)),
    )
    which = f"thread {inner.a.thread} made it in one twin, thread {inner.b.thread} in the other"
    detail = "; ".join(filter(None, (inner.detail, which)))
    return dataclasses.replace(inner, detail=detail, reader=origin.a)

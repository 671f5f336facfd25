"""An operation whose inputs differ though nothing before it did: who wrote them, or handed over others. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.localize.operation_kinds import OVERWRITING
from orchestrator.localize.origins import Origin, Record, in_place, last_writer, maker, root, seeds
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, OUTPUTS_DIFFER, REORDERED, SEED
from orchestrator.localize.sequences import prints
from orchestrator.localize.trace import Event

if TYPE_CHECKING:
    from orchestrator.localize.events import Walk


def of_inputs(
    walk: Walk, record: Record, differing: Sequence[tuple[tuple[str, str, int], tuple[str, str, int]]]
) -> Origin | None:
    """Inputs differ though nothing before did: who wrote them?"""
    ea = record.a
    for (label, pa, source), (_, pb, other) in differing:
        if label.startswith("generator"):
            return _of_generator(walk, record, label, source)
        if ea.short in OVERWRITING and not label[:1].isdigit():
            continue
        unset = _unset_below(walk, source, ea.value)
        if unset is not None:
            made = f" at {ea.where}" if ea.where else ""
            detail = f"{ea.name}{made} reads it" + (f" in {ea.module}" if ea.module else "")
            return walk.origin(unset.a, unset.b, OUTPUTS_DIFFER, detail, unset=True, reader=ea, label=label)
        return _of_tensor(walk, record, label, (source, other), (pa, pb))
    return None if record.agreed else walk.origin(ea, record.b, OUTPUTS_DIFFER)


def _of_generator(walk: Walk, record: Record, label: str, source: int) -> Origin:
    """A draw from a generator whose state is another one: seeded apart, drawn from by others, or never seeded."""
    ea, eb = record.a, record.b
    extra = next((e for e in walk.skipped if any(e.i == s for x, _, s in eb.ins if x == label)), None)
    if walk.resumed and extra is not None and extra.kind == "draw":
        detail = f"the resumed twin alone draws from {label} here, before both go on"
        return walk.origin(extra, extra, CONTROL_FLOW, detail, reader=ea, label=label)
    apart = walk.seeded_apart.get(label)
    if apart is not None:
        return walk.origin(*apart, SEED, seeds(*apart), reader=ea, label=label)
    threads = {e.thread for e in walk.left if e.kind in ("draw", "seed") and any(x[0] == label for x in e.ins)}
    if len(threads) > 1:
        detail = f"{label} is drawn from by {len(threads)} threads, in turns that timing decides"
        return walk.origin(ea, eb, CHANGED_BEHIND, detail, label=label)
    if (source not in walk.records and source < 0) or label in walk.adrift:
        detail = f"{label} is in another state before this draw: nobody who was seen seeded it"
        return walk.origin(ea, eb, SEED, detail, outside=True, label=label)
    writer = walk.records.get(source)
    since = (writer.a.where or writer.a.name) if writer is not None else "the draw before"
    detail = f"{label} moved between {since} and this draw, by draws that were not seen or that one twin alone made"
    return walk.origin(ea, eb, CHANGED_BEHIND, detail, label=label)


def _of_tensor(walk: Walk, record: Record, label: str, sources: tuple[int, int], found: tuple[str, str]) -> Origin:
    ea, eb = record.a, record.b
    writer = walk.records.get(sources[0])
    last = [last_writer(sources[0], walk.left), last_writer(sources[1], walk.right)]
    one_version = writer is not None and writer.b.i == sources[1]
    raced = next((e for e in last if e is not None and e.thread != ea.thread and in_place(e)), None)
    if raced is not None and not one_version and not _unlike_memory(walk, last):
        place = f"{raced.name} at {raced.where or '?'} in thread {raced.thread}"
        if (raced.name, raced.where) == (ea.name, ea.where):
            detail = f"input {label} is what several threads add to, in turns that timing decides: {place} came before"
            return walk.origin(ea, eb, REORDERED, detail, label=label, chain=[raced])
        detail = f"input {label} is written meanwhile by {place}"
        return walk.origin(ea, eb, CHANGED_BEHIND, detail, label=label, chain=[raced])
    if writer is not None and one_version and _whole(ea, label, found, writer):
        place = f"{writer.a.name} at {writer.a.where or '?'}"
        detail = f"input {label} is as {place} left it in one twin alone: somebody who was not seen has written it"
        return walk.origin(ea, eb, CHANGED_BEHIND, detail, label=label, chain=[writer.a])
    if _seen(found[1], walk.left) and _seen(found[0], walk.right):
        # Both tensors are there in both twins: it is another one of the same that is handed over.
        makers = [maker(found[0], walk.left), maker(found[1], walk.left)]
        detail = f"input {label} is another one of the same tensors: the one of {makers[0]}, and that of {makers[1]}"
        chain = [e for e in walk.left if e.i == sources[0]] + [e for e in walk.right if e.i == sources[1]]
        return walk.origin(ea, eb, REORDERED, detail, label=label, chain=chain)
    makers_of = [e for e, f in zip(last, found, strict=True) if e is not None and f in prints(e.outs)]
    threads = [e.thread for e in makers_of]
    if not one_version and len(threads) == 2 and (threads[0] != threads[1] or not {0, ea.thread} & set(threads)):
        # Each twin was handed what one of its threads had made; the other's was not made yet.
        one, other = (f"{e.name} at {e.where or '?'} in thread {e.thread}" for e in makers_of)
        detail = f"input {label} is what {one} made in one twin, and what {other} made in the other"
        return walk.origin(ea, eb, REORDERED, detail, label=label, chain=makers_of)
    if walk.resumed and writer is None and last[0] is not None and any(e is last[0] for e in walk.skipped):
        detail = f"the first run alone writes what {ea.name} at {ea.where or '?'} reads, before both go on"
        return walk.origin(last[0], last[0], CONTROL_FLOW, detail, reader=ea, label=label)
    if writer is None:
        detail = f"input {label} differs already when the operation reads it"
        return walk.origin(ea, eb, OUTPUTS_DIFFER, detail, outside=True, label=label)
    held = found[0] in prints(writer.a.outs) or found[1] in prints(writer.b.outs)
    detail = f"input {label} was last written by {writer.a.name} at {writer.a.where or 'an unknown line'}, which left "
    detail += "equal bits" + ("" if held else " in what it wrote")
    return walk.origin(ea, eb, CHANGED_BEHIND, detail, label=label, chain=[writer.a])


def _unlike_memory(walk: Walk, last: Sequence[Event | None]) -> bool:
    """Whether what both twins read was made at two places: another tensor, and no other version of one."""
    roots = [root(event, stream) for event, stream in zip(last, (walk.left, walk.right), strict=True)]
    return roots[0] is not None and roots[1] is not None and roots[0] != roots[1]


def _seen(fingerprint: str, stream: Sequence[Event]) -> bool:
    """Whether some operation of the stream made it, or read it (a part of a tensor is made by no operation)."""
    return exists(fingerprint, stream) or any(fingerprint == item[1] for event in stream for item in event.ins)


def _unset_below(walk: Walk, source: int, note: str) -> Record | None:
    """The event that made memory which an input reads before anybody wrote it: by the tracer's own count of bytes
    written (its note), else by going back through writes into a part of it."""
    named = re.search(r"uninitialised: event (\d+)", note)
    if named is not None and int(named[1]) in walk.records:
        return walk.records[int(named[1])]
    seen: set[int] = set()
    while source >= 0 and source not in seen:
        seen.add(source)
        record = walk.records.get(source)
        if record is None:
            return None
        if record.unset >= 0:
            return record
        # A write into a part: what it wrote into is its first input.
        if not record.a.ins or not record.a.short.endswith("_"):
            return None
        source = record.a.ins[0][2]
    return None


def exists(fingerprint: str, stream: Sequence[Event]) -> bool:
    """Whether some event of the stream made it."""
    return any(fingerprint == item[1] for event in stream for item in event.outs)


def _whole(event: Event, label: str, found: tuple[str, str], writer: Record) -> bool:
    """Whether it is all of the memory that the writer left, and so no other part of it in each twin."""
    if (found[0] in prints(writer.a.outs)) != (found[1] in prints(writer.b.outs)):
        return True
    given = re.findall(r"[^,\[]+(?:\[[^\]]*\])?", event.shapes.rpartition("->")[0])
    size = _bytes(given[int(label)]) if label.isdigit() and int(label) < len(given) else 0
    return size > 0 and size == _bytes(writer.a.shapes.rpartition("->")[2])


def _bytes(shape: str) -> int:
    """Bytes of ``f32[8,4]``: 128; 0 for what is none."""
    match = re.fullmatch(r"[a-z]+(\d+)\[([\d,]*)\]", shape.strip())
    if match is None:
        return 0
    return math.prod(int(n) for n in match[2].split(",") if n) * max(1, int(match[1]) // 8)

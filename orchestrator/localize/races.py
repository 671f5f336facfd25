"""Races between threads or processes, provoked: twins that differ in nothing but in whose lines wait.

Tracing slows a program down, so that a race is won or lost alike in both twins. A delay before lines of one side in
one twin and of the other side in the other lets it end in both ways; a correct program stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foxrun.tracing.words import HANDED_AGAIN
from orchestrator.errors import JobFailed
from orchestrator.hostile import HOSTILITIES
from orchestrator.localize import bounded, slices
from orchestrator.localize.events import align
from orchestrator.localize.operation_kinds import ADDS_ATOMICALLY, WRITES_BY_INDEX
from orchestrator.localize.operations import FIRST_LOOK, Found, concluded, window_of
from orchestrator.localize.origins import Origin, restless
from orchestrator.localize.pair import Kind, Pair, Window
from orchestrator.localize.replay import computes
from orchestrator.localize.result import CHANGED_BEHIND, DELAYS, HOST_VALUE, OUTPUTS_DIFFER, REORDERED, SEED, Trial
from orchestrator.localize.session import Session
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Event

SHORT_MS, LONG_MS = 50, 300
RATE = 0.7  # how often a pair parts whose delays end the race in both ways, cautiously
OF_DEVICE = "streams of the device"
OTHERS_WRITE = "is memory that others write"
OF_ANOTHER = "is what another"
# Who waits in the first twin and who in the second: the first worker against all others, then the second.
STREAMS = (("default-stream",), ("other-streams",))
DEVICE_MS = 10  # a copy or a kernel takes less, and a hundred of them are a second
SIDES = ((("odd",), ("main", "even")), (("even",), ("main", "odd")))


@dataclass(frozen=True, kw_only=True)
class Raced:
    """``kind``: pairs of it end the race in both ways; ``found``: what such a pair showed, None where it agreed."""

    kind: Kind
    found: Found | None


def possible(pair: Pair) -> bool:
    """Whether something ran beside the program's main thread: others, or a device, which nobody waits for by itself."""
    return on_device(pair) or several(pair)


def several(pair: Pair) -> bool:
    """Whether several threads or processes of the program ran."""
    for trace in (pair.a, pair.b):
        if len(trace.processes) > 1 or any((p.end or {}).get("threads") for p in trace.processes.values()):
            return True
    return False


def on_device(pair: Pair) -> bool:
    """Whether the program used a CUDA device."""
    return any((trace.main.header.get("device") or {}).get("name") for trace in (pair.a, pair.b))


def threads_of(pair: Pair) -> int:
    """Threads that the program ran in its main process, the main one with them."""
    return 1 + max((int((t.main.end or {}).get("threads") or 0) for t in (pair.a, pair.b)), default=0)


def could_be(origin: Origin | None) -> bool:
    """Whether an origin may be a race's: an order, a value from outside, memory that changed, or none at all."""
    if origin is None:
        return True
    if origin.unset or computes(origin):
        return False
    return origin.how != SEED


def kind_of(
    sides: tuple[tuple[str, ...], tuple[str, ...]] = SIDES[0], ms: int = SHORT_MS, first_step: int = 0, steps: int = 0
) -> Kind:
    """Twins that differ in delays alone; ``steps``: threads wait for so many of the main one's, and not for ``ms``."""
    delays: list[Mapping[str, Any]] = [
        {"sides": list(side), "ms": ms, "first_step": first_step, "steps": steps} for side in sides
    ]
    return Kind(name=DELAYS, hostilities=(), delays=(delays[0], delays[1]))


def kinds(pair: Pair) -> tuple[Kind, ...]:
    """Delays in the order in which they are tried: short ones of each side; then, since on a busy machine or beside
    large tensors a short one is none, longer ones, and threads that wait while the training makes steps."""
    workers = max(threads_of(pair), *(len(trace.processes) for trace in (pair.a, pair.b))) - 1
    device = (kind_of(STREAMS, DEVICE_MS),) if on_device(pair) else ()
    if workers == 0:
        return device
    sides = SIDES if workers > 1 else SIDES[:1]
    # Two workers that wait in turn may share the work alike: in the last one nobody but the first of them waits.
    return (*device, *(kind_of(one) for one in sides), kind_of((("odd",), ("main",)), LONG_MS, steps=2))


def hostile(kind: Kind) -> Kind:
    """The same delays in twins that differ in all else that must not matter too: for remedies."""
    return dataclasses.replace(kind, hostilities=tuple(HOSTILITIES))


def waits(kind: Kind) -> str:
    """What waits in twins of this kind, in words."""
    return OF_DEVICE if any(d is not None and tuple(d["sides"]) in STREAMS for d in kind.delays) else "threads"


def slower(kind: Kind, first_step: int) -> Kind:
    """The same sides wait, for longer, from a step on."""
    ms = max(DEVICE_MS * 3 if waits(kind) == OF_DEVICE else LONG_MS, *(d["ms"] for d in kind.delays if d))
    delays = [{**delay, "ms": ms, "first_step": first_step} if delay else None for delay in kind.delays]
    return dataclasses.replace(kind, delays=(delays[0], delays[1]))


def provoke(session: Session, steps: StepsFound, pair: Pair) -> Raced | None:
    """Twins that differ in delays alone, until such a pair parts; None where the time does not allow for one."""
    best: Raced | None = None
    for kind in kinds(pair):
        if not session.affords(1.5):
            break
        found = _run(session, kind, dataclasses.replace(FIRST_LOOK, stop_after=_beyond(steps.step)))
        one = Raced(kind=kind, found=None) if found is None else closer(session, kind, found)
        if one.found is not None and one.found.origin is not None:
            return one
        if best is None or best.found is None:
            best = one
    return best


def closer(session: Session, kind: Kind, found: Found) -> Raced:
    """What a pair that parted by delays alone shows; where its events say nothing, once more with longer ones near the
    step, and then with the same ones: what the step takes may have been decided long before."""
    first, last = window_of(found.steps)
    last = _beyond(last)
    window = Window(level="operations", first_step=first, last_step=last, stop_after=last)
    for again in (slower(kind, first), kind):
        if found.origin is not None or not session.affords(1.5):
            break
        one = _run(session, again, window)
        if one is not None:
            session.drop(found.pair)
            kind, found = again, one
    return Raced(kind=kind, found=dataclasses.replace(found, origin=raced(found) or _read_late(found)))


def _beyond(step: int | None) -> int | None:
    """Where to stop: a race that the rows show may show in operations some steps later."""
    return None if step is None else step + 2


def _read_late(found: Found) -> Origin | None:
    """An input that differs when a module is called, and of which every operation then reads the same: it is written
    between the call and the read."""
    if found.steps.kind != "input":
        return None
    streams = bounded.read(found.pair.a.main, found.pair.b.main)
    reads = [
        next((e for e in stream if e.step == found.steps.step and e.phase == "forward" and e.kind == "op"), None)
        for stream in (streams.a, streams.b)
    ]
    if reads[0] is None or reads[1] is None:
        return None
    detail = f"{found.steps.leaf} was other bytes when the module was called than when it was read"
    return Origin(a=reads[0], b=reads[1], how=CHANGED_BEHIND, detail=detail, process=found.pair.a.main.name)


def _run(session: Session, kind: Kind, window: Window) -> Found | None:
    sides = " or ".join("/".join(delay["sides"]) for delay in kind.delays if delay is not None)
    what = f"is it a race? twins that differ in delays alone ({waits(kind)} that wait: {sides})"
    pair = session.run(kind, window, what)
    seen = compared(session, pair)
    if not seen.leaf:
        session.trials.append(Trial(number=len(session.trials) + 1, pair=kind.name, note="agreed"))
        session.drop(pair)
        return None
    return concluded(pair, seen, window.first_step)


def compared(session: Session, pair: Pair) -> StepsFound:
    """As the session compares; a program that fails because it has to wait has not parted."""
    try:
        return session.compared(pair)
    except JobFailed as error:
        session.notes.append(f"with delays before its lines {error}; nothing was concluded from it")
        return StepsFound(note="it does not stand delays")


def raced(found: Found) -> Origin | None:
    """The origin of a pair whose twins differ in delays alone. What then differs without a writer, somebody wrote who
    was not seen; what Python hands over again, and is another time another content, was written in between."""
    origin = found.origin
    if origin is None:
        return None
    ea, eb = origin.a, origin.b
    if ea.brings_data and (
        HANDED_AGAIN in (ea.value, eb.value) or origin.how == CHANGED_BEHIND or _handed_on(found, origin)
    ):
        again = "what Python hands to torch here it hands over more than once, and others write that memory"
        detail = origin.detail if origin.how == CHANGED_BEHIND else again
        late = _late(found, origin)
        return dataclasses.replace(origin, how=CHANGED_BEHIND, detail=detail, chain=[ea], reader=late)
    if origin.label and (origin.how == REORDERED or (origin.how == OUTPUTS_DIFFER and origin.outside)):
        streams = bounded.read(found.pair.a.main, found.pair.b.main)
        if (inner := slices.made_otherwise(origin, streams.a, streams.b, align)) is not None:
            return inner
        sources = _source(origin.a, origin.label), _source(origin.b, origin.label)
        if min(sources) >= 0 or (max(sources) < 0 and found.first_step == 0 and found.children):
            # Of what was made here the maker is known, but of buffers of Python's; with children, it came from one.
            made = "thread made, of another part of the work" if min(sources) >= 0 else "process made, in another order"
            detail = f"input {origin.label} {OF_ANOTHER} {made}"
            return dataclasses.replace(origin, how=REORDERED, detail=detail)
        detail = f"input {origin.label} {OTHERS_WRITE}: it differs as they are waited for or not"
        return _others_write(found, origin, detail) if max(sources) < 0 else _changed(origin, detail)
    if (label := _changed_under(found, origin)) is not None:
        detail = f"input {label} {OTHERS_WRITE}: it changed while {ea.name} ran, which reads equal bytes in both twins"
        return _others_write(found, dataclasses.replace(origin, label=label), detail)
    return origin


def _changed(origin: Origin, detail: str) -> Origin:
    return dataclasses.replace(origin, how=CHANGED_BEHIND, detail=detail, chain=[origin.a])


def _others_write(found: Found, origin: Origin, detail: str) -> Origin:
    """Memory that no operation made, from the line on that was handed it."""
    streams = bounded.read(found.pair.a.main, found.pair.b.main)
    first = _first_read(origin, streams.a, streams.b)
    if first is None:
        return _changed(origin, detail)
    detail += f"; read here first, and other bytes by {origin.a.name} at {origin.a.where or '?'}"
    return dataclasses.replace(_changed(origin, detail), a=first, b=first, chain=[first], reader=origin.a, label="")


def _changed_under(found: Found, origin: Origin) -> str | None:
    """The input of a plain operation that gives other outputs of equal inputs, though nothing but delays differs: one
    that Python or another thread hands over."""
    ea = origin.a
    if origin.how != OUTPUTS_DIFFER or origin.outside or origin.unset or ea.kind != "op" or "cuda" in ea.shapes:
        return None
    if ea.short in ADDS_ATOMICALLY | WRITES_BY_INDEX:
        return None
    theirs = {e.i for e in origin.chain if e.brings_data or e.thread != ea.thread}
    whole = found.first_step == 0  # so that what has no maker came from outside of torch
    return next((x for x, _, source in ea.ins if source in theirs or (whole and source < 0 and x[:1].isdigit())), None)


def _handed_on(found: Found, origin: Origin) -> bool:
    """Whether this line hands the same memory over again later, so that the twins differ in what was there already."""
    streams = bounded.read(found.pair.a.main, found.pair.b.main)
    return origin.how == HOST_VALUE and any(
        e.brings_data and e.value == HANDED_AGAIN and e.where == origin.a.where for e in (*streams.a, *streams.b)
    )


def _late(found: Found, origin: Origin) -> Event | None:
    """Who reads other bytes than were handed over to it in the twin in which the reader's thread waits."""
    streams = bounded.read(found.pair.a.main, found.pair.b.main)
    side = "main" if origin.a.thread == 0 else "odd" if origin.a.thread % 2 else "even"
    first = found.pair.kind.delays[0]
    if first is not None and side in first["sides"]:
        return restless(origin.a, streams.a)
    return restless(origin.b, streams.b)


def _first_read(origin: Origin, left: Sequence[Event], right: Sequence[Event]) -> Event | None:
    """Who reads the same memory first in the step, outside of every module: the program's own line that was handed it,
    where the origin is a module's, which reads what it is given."""
    if not origin.a.module:
        return None
    found = {x[1] for e in (origin.a, origin.b) for x in e.ins if x[0] == origin.label}
    for stream, last in ((left, origin.a.i), (right, origin.b.i)):
        for event in stream:
            if event.i >= last or event.step != origin.a.step or event.module or event.thread != origin.a.thread:
                continue
            if any(fingerprint in found and source < 0 for _, fingerprint, source in event.ins):
                return event
    return None


def _source(event: Event, label: str) -> int:
    return next((source for name, _, source in event.ins if name == label), -1)


def delayed(found: Sequence[Found]) -> Found | None:
    """The trial whose twins differed in delays alone."""
    return next((item for item in found if item.pair.kind.name == DELAYS), None)

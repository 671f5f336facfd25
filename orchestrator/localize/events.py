"""Event streams of two twins, aligned: the first operation whose inputs agree and whose outputs differ. Pure.

Host events (time, listings, files) are kept aside: a clock that nobody asks for a seed parts every pair and means
nothing. They are what may have led to an origin, not the origin, unless nothing else is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, HOST_VALUE, OUTPUTS_DIFFER, REORDERED, SEED
from orchestrator.localize.trace import Event

BRACKETS = ("module", "backward", "optimizer", "step")
# Write their result over whatever was there, and read none of it.
OVERWRITING = frozenset(
    ["copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_",
     "cauchy_", "geometric_"]
)  # fmt: skip
LOOK_AHEAD = 400
RESYNC, RESYNC_RUN = 12, 16
RECORDS = 400_000


@dataclass(slots=True)
class Record:
    """What both twins' events of one pair came to."""

    a: Event
    b: Event
    agreed: bool = True  # the outputs
    unset: int = -1  # its index, when it makes memory that nobody has written


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the streams part. ``outside``: the differing input was there before the window, or came from outside."""

    a: Event
    b: Event
    how: str
    detail: str = ""
    outside: bool = False
    unset: bool = False
    reader: Event | None = None
    process: str = "0"
    label: str = ""
    before: int = 0  # events that agreed
    chain: list[Event] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """What came of two streams. ``host``: host and seed events of which the twins got different answers, in order."""

    origin: Origin | None
    events: int
    host: list[tuple[Event, Event]] = field(default_factory=list)
    skipped: list[Event] = field(default_factory=list)  # events that one twin alone had, without consequence
    threads: int = 1


def align(a: Iterable[Event], b: Iterable[Event], process: str = "0") -> Aligned:
    """Walk through both streams in program order up to the origin.

    Streams of several threads whose turns differ are walked thread by thread.
    """
    hosts: tuple[list[Event], list[Event]] = ([], [])
    left, right = list(_without_hosts(a, hosts[0])), list(_without_hosts(b, hosts[1]))
    walk = _Walk(process)
    origin = walk.through(left, right)
    threads = len({e.thread for e in left} | {e.thread for e in right})
    if origin is not None and origin.how == CONTROL_FLOW and threads > 1 and _turns_differ(left, right):
        origin, walk = _thread_by_thread(left, right, process)
    return Aligned(
        origin=origin, events=walk.count, host=_host_differences(*hosts), skipped=walk.skipped, threads=threads
    )


def _without_hosts(events: Iterable[Event], hosts: list[Event]) -> Iterator[Event]:
    for event in events:
        if event.kind == "host" and not event.brings_data:
            hosts.append(event)
        elif event.kind not in BRACKETS:
            yield event


class _Walk:
    """The state of one walk: records of what was passed, so that an input's writer can be asked."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.records: dict[int, Record] = {}
        self.of_b: dict[int, int] = {}
        self.count = 0
        self.skipped: list[Event] = []

    def through(self, left: Sequence[Event], right: Sequence[Event]) -> Origin | None:
        i = j = 0
        while i < len(left) and j < len(right):
            ea, eb = left[i], right[j]
            if ea.key != eb.key:
                step = _resync(left, i, right, j)
                if step is None:
                    return self._other_sequence(left, i, right, j)
                self.skipped += [*left[i : i + step[0]], *right[j : j + step[1]]]
                i, j = i + step[0], j + step[1]
                continue
            origin = self.pair(ea, eb)
            if origin is not None:
                return origin
            i, j = i + 1, j + 1
        if i < len(left) or j < len(right):
            more = (left[i:] or right[j:])[0]
            which = "first" if i < len(left) else "second"
            if left and right:
                detail = f"the {which} twin alone goes on, with {more.name}"
                return self._origin(more, more, CONTROL_FLOW, detail)
        return None

    def pair(self, ea: Event, eb: Event) -> Origin | None:
        """Both twins' events of the same operation: None while nothing is known to differ."""
        self.count += 1
        record = Record(ea, eb)
        if len(self.records) < RECORDS:
            self.records[ea.i] = record
            self.of_b[eb.i] = ea.i
        record.agreed = _prints(ea.outs) == _prints(eb.outs)
        if ea.kind == "seed":
            # What state it found does not matter: it makes a new one.
            differ = not record.agreed or ea.value != eb.value
            return self._origin(ea, eb, SEED, f"seeded with {ea.value} and {eb.value}") if differ else None
        differing = [(x, y) for x, y in zip(ea.ins, eb.ins, strict=False) if x[1] != y[1]]
        if len(ea.ins) != len(eb.ins):
            return self._origin(ea, eb, CONTROL_FLOW, "the twins hand it another number of inputs")
        if ea.unset:
            record.unset = ea.i
            return None
        if not differing:
            if record.agreed:
                return None
            if ea.brings_data:
                return self._origin(ea, eb, HOST_VALUE, "what Python hands to torch differs", outside=True)
            return self._origin(ea, eb, OUTPUTS_DIFFER)
        if record.agreed and not any(x[0].startswith("generator") for x, _ in differing):
            return None  # what differs has no part in the result: memory that is written over, an empty buffer
        if _is_reordered(ea, eb):
            return self._origin(ea, eb, REORDERED, "the twins hand it equal tensors in another order")
        return self._of_inputs(record, differing)

    def _of_inputs(
        self, record: Record, differing: Sequence[tuple[tuple[str, str, int], tuple[str, str, int]]]
    ) -> Origin | None:
        """Inputs differ though nothing before did: who wrote them?"""
        ea = record.a
        for (label, pa, source), (_, pb, _) in differing:
            if label.startswith("generator"):
                return self._of_generator(record, label, source)
            if ea.short in OVERWRITING and not label[:1].isdigit():
                continue
            unset = self._unset_below(source, ea.value)
            if unset is not None:
                made = f" at {ea.where}" if ea.where else ""
                detail = f"{ea.name}{made} reads it" + (f" in {ea.module}" if ea.module else "")
                return self._origin(unset.a, unset.b, OUTPUTS_DIFFER, detail, unset=True, reader=ea, label=label)
            return self._of_tensor(record, label, source, pa, pb)
        if record.agreed:
            return None
        return self._origin(ea, record.b, OUTPUTS_DIFFER)

    def _of_generator(self, record: Record, label: str, source: int) -> Origin:
        ea, eb = record.a, record.b
        writer = self.records.get(source)
        if writer is None:
            detail = f"{label} is in another state before this draw: nobody who was seen seeded it"
            return self._origin(ea, eb, SEED, detail, outside=True, label=label)
        detail = f"{label} moved between {writer.a.where or writer.a.name} and this draw, by draws that were not seen"
        return self._origin(ea, eb, CHANGED_BEHIND, detail, label=label)

    def _of_tensor(self, record: Record, label: str, source: int, pa: str, pb: str) -> Origin:
        ea, eb = record.a, record.b
        writer = self.records.get(source)
        if writer is None:
            detail = f"input {label} differs already when the operation reads it"
            return self._origin(ea, eb, OUTPUTS_DIFFER, detail, outside=True, label=label)
        left = f"input {label} was last written by {writer.a.name} at {writer.a.where or 'an unknown line'}"
        held = pa in _prints(writer.a.outs) or pb in _prints(writer.b.outs)
        detail = f"{left}, which left equal bits" + ("" if held else " in the part that it wrote")
        return self._origin(ea, eb, CHANGED_BEHIND, detail, label=label, chain=[writer.a])

    def _unset_below(self, source: int, note: str) -> Record | None:
        """The event that made memory which an input reads before anybody wrote it: by the tracer's own count of bytes
        written (its note), else by going back through writes into a part of it."""
        named = re.search(r"uninitialised: event (\d+)", note)
        if named is not None and int(named[1]) in self.records:
            return self.records[int(named[1])]
        seen: set[int] = set()
        while source >= 0 and source not in seen:
            seen.add(source)
            record = self.records.get(source)
            if record is None:
                return None
            if record.unset >= 0:
                return record
            # A write into a part: what it wrote into is its first input.
            if not record.a.ins or not record.a.short.endswith("_"):
                return None
            source = record.a.ins[0][2]
        return None

    def _other_sequence(self, left: Sequence[Event], i: int, right: Sequence[Event], j: int) -> Origin:
        ea, eb = left[i], right[j]
        after_a, after_b = left[i : i + LOOK_AHEAD], right[j : j + LOOK_AHEAD]
        length = _same_in_another_order(after_a, after_b)
        if length:
            detail = f"the twins run the same {length} operations from here in another order"
            return self._origin(ea, eb, REORDERED, detail)
        one, other = (f"{e.name}{' at ' + e.where if e.where else ''}" for e in (ea, eb))
        if one == other:
            one, other = f"{ea.name} of {ea.shapes}", f"of {eb.shapes}"
        return self._origin(ea, eb, CONTROL_FLOW, f"one twin runs {one}, the other {other}")

    def _origin(self, a: Event, b: Event, how: str, detail: str = "", **more: object) -> Origin:
        return Origin(a=a, b=b, how=how, detail=detail, process=self.process, before=self.count, **more)  # type: ignore[arg-type]


def _prints(outs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(item[1] for item in outs)


def _ins(event: Event) -> tuple[str, ...]:
    return tuple(item[1] for item in event.ins)


def _is_reordered(ea: Event, eb: Event) -> bool:
    a = [item[1] for item in ea.ins if not item[0].startswith("generator")]
    b = [item[1] for item in eb.ins if not item[0].startswith("generator")]
    return a != b and Counter(a) == Counter(b)


def _resync(left: Sequence[Event], i: int, right: Sequence[Event], j: int) -> tuple[int, int] | None:
    """How many events of each side to pass over until a run of equal ones follows; None when there is no such run."""
    for far in range(1, RESYNC):
        for step_a in range(far + 1):
            for step_b in (far,) if step_a < far else range(far + 1):
                a = left[i + step_a : i + step_a + RESYNC_RUN]
                b = right[j + step_b : j + step_b + RESYNC_RUN]
                passed = [*left[i : i + step_a], *right[j : j + step_b]]
                if any(e.kind in ("draw", "seed", "kernel") for e in passed):
                    continue
                if len(a) == len(b) == RESYNC_RUN and all(_alike(x, y) for x, y in zip(a, b, strict=True)):
                    return step_a, step_b
    return None


def _alike(x: Event, y: Event) -> bool:
    return x.key == y.key and _ins(x) == _ins(y) and _prints(x.outs) == _prints(y.outs)


def _same_in_another_order(a: Sequence[Event], b: Sequence[Event]) -> int:
    """The length of the shortest stretch from here that both twins run, in another order; 0 when there is none."""
    balance: Counter[tuple[str, str, str]] = Counter()
    for length, (x, y) in enumerate(zip(a, b, strict=False), start=1):
        for event, sign in ((x, 1), (y, -1)):
            token = (event.kind, event.name, event.shapes)
            balance[token] += sign
            if not balance[token]:
                del balance[token]
        if not balance and length > 1:
            return length
    return 0


def _turns_differ(left: Sequence[Event], right: Sequence[Event]) -> bool:
    return [e.thread for e in left] != [e.thread for e in right]


def _thread_by_thread(left: Sequence[Event], right: Sequence[Event], process: str) -> tuple[Origin | None, _Walk]:
    """Pairs of each thread's own sequence, then all of them in the order in which the first twin ran them."""
    matched: list[tuple[Event, Event]] = []
    breaks: list[tuple[list[Event], int, list[Event], int]] = []
    for thread in sorted({event.thread for event in left}):
        a = [event for event in left if event.thread == thread]
        b = [event for event in right if event.thread == thread]
        equal = 0
        while equal < min(len(a), len(b)) and a[equal].key == b[equal].key:
            equal += 1
        matched += zip(a[:equal], b[:equal], strict=True)
        if equal < min(len(a), len(b)):
            breaks.append((a, equal, b, equal))
    walk = _Walk(process)
    stop = min((a[i].i for a, i, _, _ in breaks), default=None)
    for ea, eb in sorted(matched, key=lambda pair: pair[0].i):
        if stop is not None and ea.i > stop:
            break
        origin = walk.pair(ea, eb)
        if origin is not None:
            return origin, walk
    if breaks:
        a, i, b, j = min(breaks, key=lambda item: item[0][item[1]].i)
        return walk._other_sequence(a, i, b, j), walk
    return None, walk


def _host_differences(a: Sequence[Event], b: Sequence[Event]) -> list[tuple[Event, Event]]:
    """Host events of which the twins got different answers, matched by name and line, then by their turn there."""
    turns: dict[tuple[str, str], list[Event]] = {}
    for event in b:
        turns.setdefault((event.name, event.where), []).append(event)
    taken: Counter[tuple[str, str]] = Counter()
    found = []
    for event in a:
        key = (event.name, event.where)
        others = turns.get(key, [])
        if taken[key] < len(others):
            other = others[taken[key]]
            taken[key] += 1
            if (event.value, _prints(event.outs)) != (other.value, _prints(other.outs)):
                found.append((event, other))
    return found

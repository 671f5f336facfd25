"""Event streams of two twins, aligned: the first operation whose inputs agree and whose outputs differ. Pure.

Host events (time, listings, files) are kept aside: a clock that nobody asks for a seed parts every pair and means
nothing. They are what may have led to an origin, not the origin, unless nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from foxrun.tracing.words import QUEUED
from orchestrator.localize import beyond, by_thread
from orchestrator.localize.inputs import exists, of_inputs
from orchestrator.localize.operation_kinds import FILLS
from orchestrator.localize.origins import (
    Aligned,
    Origin,
    Record,
    drawn_apart,
    is_reordered,
    of_another_dtype,
    reads,
    restless,
    results,
)
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, HOST_VALUE, OUTPUTS_DIFFER, REORDERED, SEED
from orchestrator.localize.sequences import (
    LOOK_AHEAD,
    by_keys,
    host_differences,
    prints,
    resync,
    run_alone,
    same_in_another_order,
    turns_differ,
    without_hosts,
)
from orchestrator.localize.trace import Event

RECORDS = 400_000


def align(
    a: Iterable[Event], b: Iterable[Event], process: str = "0", *, resumed: bool = False, cut: bool = False
) -> Aligned:
    """Walk through both streams in program order up to the origin.

    ``resumed``: the second twin loads what the first one goes on with, so what it alone does is passed over.
    ``cut``: both streams go on after what is given, so that one is longer means nothing.

    Streams of several threads whose turns differ are walked thread by thread.
    """
    hosts: tuple[list[Event], list[Event]] = ([], [])
    left, right = list(without_hosts(a, hosts[0])), list(without_hosts(b, hosts[1]))
    walk = Walk(process, left, right, resumed=resumed, cut=cut)
    origin = walk.through()
    threads = len({e.thread for e in left} | {e.thread for e in right})
    mixed = origin is not None and (
        origin.how in (CONTROL_FLOW, REORDERED) or origin.a.thread != origin.b.thread or origin.a.thread != 0
    )
    if mixed and threads > 1 and turns_differ(left, right):
        walk = Walk(process, left, right)
        origin = by_thread.through(walk, align)
    origin = beyond.blamed(walk.settled(origin), left, right)
    return Aligned(
        origin=origin, events=walk.count, host=host_differences(*hosts), skipped=walk.skipped, threads=threads
    )


class Walk:
    """The state of one walk: records of what was passed, so that an input's writer can be asked."""

    def __init__(
        self, process: str, left: Sequence[Event], right: Sequence[Event], *, resumed: bool = False, cut: bool = False
    ) -> None:
        self.process = process
        self.cut = cut
        self.resumed = resumed
        self.left, self.right = left, right
        self.records: dict[int, Record] = {}
        self.count = 0
        self.skipped: list[Event] = []
        # Generators that were seeded apart; an origin once somebody draws from them.
        self.seeded_apart: dict[str, tuple[Event, Event]] = {}
        # Generators that nobody has seeded yet, while what is drawn from them is read by nobody; the first such draw.
        self.adrift: set[str] = set()
        self.unread: Origin | None = None

    def through(self) -> Origin | None:
        """Both streams in program order."""
        left, right = self.left, self.right
        i = j = 0
        while i < len(left) and j < len(right):
            ea, eb = left[i], right[j]
            if ea.key != eb.key:
                step = by_keys(left, i, right, j) if self.resumed else resync(left, i, right, j)
                if step is None:
                    return self.other_sequence(left, i, right, j)
                self.skipped += [*left[i : i + step[0]], *right[j : j + step[1]]]
                i, j = i + step[0], j + step[1]
                continue
            origin = self.pair(ea, eb)
            if origin is not None:
                return origin
            i, j = i + 1, j + 1
        if not self.cut and left and right and (i < len(left) or j < len(right)):
            more = (left[i:] or right[j:])[0]
            which = "first" if i < len(left) else "second"
            return self.origin(more, more, CONTROL_FLOW, f"the {which} twin alone goes on, with {more.name}")
        return None

    def pair(self, ea: Event, eb: Event) -> Origin | None:
        """Both twins' events of the same operation: None while nothing is known to differ."""
        self.count += 1
        record = Record(ea, eb)
        if len(self.records) < RECORDS:
            self.records[ea.i] = record
        record.agreed = prints(results(ea)) == prints(results(eb))
        if ea.kind == "seed":
            self._seed(record)
            return None
        differing = [(x, y) for x, y in zip(ea.ins, eb.ins, strict=False) if x[1] != y[1]]
        if len(ea.ins) != len(eb.ins):
            return self.origin(ea, eb, CONTROL_FLOW, "the twins hand it another number of inputs")
        if ea.unset:
            record.unset = ea.i
            return None
        if not differing:
            if (
                not record.agreed
                and ".source_Storage" in ea.name
                and not (reads(ea, self.left) or reads(eb, self.right))
            ):
                return None  # a copy of a storage begins as fresh memory, which is written over before it is read
            return None if record.agreed else self._of_outputs(record)
        if record.agreed and not any(x[0].startswith("generator") for x, _ in differing):
            return None  # what differs has no part in the result: memory that is written over, an empty buffer
        if is_reordered(ea, eb):
            return self.origin(ea, eb, REORDERED, "the twins hand it equal tensors in another order")
        origin = of_inputs(self, record, differing)
        if origin is not None and self._never_read(origin):
            self.adrift.add(origin.label)
            self.unread = self.unread or origin
            return None
        return origin

    def settled(self, origin: Origin | None) -> Origin | None:
        """The origin, once the walk is over: a draw that no operation read counts where nothing else explains it."""
        if self.unread is not None and (origin is None or origin.how == HOST_VALUE):
            return self.unread
        return origin

    def _never_read(self, origin: Origin) -> bool:
        """Whether it is a draw of a generator that is seeded only later, and no operation reads what it drew: a module
        whose first weights the program sets anew."""
        ea, eb = origin.a, origin.b
        if ea.kind != "draw" or origin.how != SEED or not origin.outside or not ea.name.startswith("aten."):
            return False
        for event, stream, read in ((ea, self.left, self._read[0]), (eb, self.right, self._read[1])):
            seeded = (e for e in stream if e.kind == "seed" and e.i > event.i)
            if event.i in read or not any(label == origin.label for e in seeded for label, _ in e.outs):
                return False
        return True

    @cached_property
    def _read(self) -> tuple[set[int], set[int]]:
        """Events whose results some operation reads, in each stream."""
        left, right = (
            {source for e in stream for label, _, source in e.ins if not label.startswith("generator")}
            for stream in (self.left, self.right)
        )
        return left, right

    def _seed(self, record: Record) -> None:
        # What state it found does not matter: it makes a new one.
        label = next((name for name, _ in record.a.outs if name.startswith("generator")), "")
        if record.agreed and record.a.value == record.b.value:
            self.seeded_apart.pop(label, None)
            self.adrift.discard(label)
        else:
            self.seeded_apart[label] = (record.a, record.b)

    def _of_outputs(self, record: Record) -> Origin:
        """Equal inputs and other outputs."""
        ea, eb = record.a, record.b
        if ea.kind == "op" and ea.short in FILLS:
            return self.origin(ea, eb, CHANGED_BEHIND, "what it filled with one value is other bytes right afterwards")
        if ea.kind == "draw" and ea.name.startswith(("random.", "numpy.")):
            return self.origin(ea, eb, OUTPUTS_DIFFER, drawn_apart(ea, eb))
        if ea.name == QUEUED:
            detail = "what was put into the queue has other bytes when the queue's thread pickles it"
            return self.origin(ea, eb, CHANGED_BEHIND, detail)
        if not ea.brings_data:
            written = [self.records[source].a for _, _, source in ea.ins if source in self.records]
            return self.origin(ea, eb, OUTPUTS_DIFFER, chain=written)
        reader = restless(ea, self.left) or restless(eb, self.right)
        if reader is not None:
            detail = f"what Python hands to torch here changes again before {reader.name} at {reader.where} reads it"
            return self.origin(ea, eb, CHANGED_BEHIND, detail, reader=reader, chain=[ea])
        if all(exists(x[1], self.right) for x in ea.outs) and all(exists(x[1], self.left) for x in eb.outs):
            detail = "what Python hands to torch comes in another order: each twin has both"
            return self.origin(ea, eb, REORDERED, detail, outside=True)
        detail, called = "what Python hands to torch differs", self._called_alone(ea, eb)
        if called:
            detail += f"; {ea.where}, which is called there, is handed equal data by other lines"
        return self.origin(ea, eb, HOST_VALUE, detail, outside=True, called=called)

    def _called_alone(self, ea: Event, eb: Event) -> str:
        """The line that led to the difference by a function which other lines call, too, and with equal data."""
        same = [r for r in self.records.values() if r.agreed and r.a.where == ea.where and r.a.name == ea.name]
        callers = {r.a.caller for r in same} - {""}
        return ea.caller if callers and ea.caller not in callers and ea.caller == eb.caller else ""

    def other_sequence(self, left: Sequence[Event], i: int, right: Sequence[Event], j: int) -> Origin:
        """Both twins go on in another way from here: the same in another order, or something else."""
        ea, eb = left[i], right[j]
        after_a, after_b = left[i : i + LOOK_AHEAD], right[j : j + LOOK_AHEAD]
        length = same_in_another_order(after_a, after_b)
        if length and not of_another_dtype(ea, eb):
            detail = f"the twins run the same {length} operations from here in another order"
            return self.origin(ea, eb, REORDERED, detail, stretch=list(after_a[:length]), called=_called(ea, eb))
        one, other = (f"{e.name}{' at ' + e.where if e.where else ''}" for e in (ea, eb))
        if one == other:
            one, other = f"{ea.name} of {ea.shapes}", f"of {eb.shapes}"
        detail = f"one twin runs {one}, the other {other}"
        alone = run_alone(left, i, right, j)
        return self.origin(ea, eb, CONTROL_FLOW, detail, alone=alone, called=_called(ea, eb))

    def origin(self, a: Event, b: Event, how: str, detail: str = "", **more: object) -> Origin:
        """An origin at these two events, after what the walk has passed."""
        return Origin(a=a, b=b, how=how, detail=detail, process=self.process, before=self.count, **more)  # type: ignore[arg-type]


def _called(a: Event, b: Event) -> str:
    """The line that both were called by, where each twin calls another function there: its own, or a library's."""
    if a.function == b.function:
        return ""
    return a.caller if a.caller in (b.caller, b.where) else b.caller if b.caller == a.where else ""

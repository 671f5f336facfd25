"""Step rows of two twins: where they part first, which of the parted leaves is the origin, and how far it grew. Pure.

States stand in a row as the step reads them. So states that part while the whole row before agreed were made by what
ran between: the optimizer, the loader, a generator.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.compare.verdict import GrowthPoint
from orchestrator.localize.result import INHERITED, ORIGIN, Parted
from orchestrator.localize.trace import Leaf, Row

# What a step reads, nearest to the cause first: moments are made from gradients, weights from moments.
READ = ("generator", "state", "moment", "weight")
PASSING = ("input", "activation")  # nothing of it is left, unless the training takes it up
GROWTH_KEPT = 2000


@dataclass(frozen=True, kw_only=True)
class StepsFound:
    """``step`` is None when all rows agree; ``row`` counts from 0; ``reads``: states parted as the step reads them."""

    step: int | None = None
    row: int = -1
    leaf: str = ""
    component: str = ""
    kind: str = ""
    reads: bool = False
    at_end: bool = False
    parted: list[Parted] = field(default_factory=list)
    growth: list[GrowthPoint] = field(default_factory=list)
    rows: int = 0
    made: int = 0  # rows that a step ended: all but the one of a program's end
    leaves: int = 0
    note: str = ""
    ignored: list[str] = field(default_factory=list)  # generators that differ and that no step drew from
    kept: bool = True  # something that the training keeps parted: weights, moments, states, gradients, a loss
    declared: bool = False  # by rows of the program's own, in the order of dataflow that it declared
    traced_rows: int = 0
    traced_step: int | None = None  # where the traced rows part, when the program's own rows decide


def is_generator(leaf: Leaf) -> bool:
    """Whether the leaf is the state of a random generator."""
    return leaf.component == "generator" or leaf.name.startswith("generator")


def is_aside(leaf: Leaf) -> bool:
    """Whether a difference of the leaf alone is none: a generator's state, what other threads computed."""
    return is_generator(leaf) or leaf.kind == "thread"


def compare_steps(a: Iterable[Row], b: Iterable[Row], *, declared: bool = False) -> StepsFound:
    """Compare two processes' rows, one at a time, from the first step that both have.

    ``declared``: the leaves stand in the order of dataflow; else states are taken as what the step reads.

    A generator's state alone is no difference: an unseeded one that nobody draws from differs in every process. It
    counts when something else parts, and it changed in the step, that is: somebody drew from it. What threads computed
    beside the training counts when something of the training's own parts: which step it falls into is a race.
    """
    first: StepsFound | None = None
    growth: list[GrowthPoint] = []
    before: tuple[Row, Row] | None = None
    found_rows: tuple[Row, Row] | None = None
    drawn: set[str] = set()
    late: set[str] = set()
    rows = leaves = made = 0
    ignored: set[str] = set()
    lengths = ""
    kept = trained = False
    for index, (ra, rb) in enumerate(_beside(a, b)):
        if ra is None or rb is None:
            longer, row = ("first", ra) if rb is None else ("second", rb)
            assert row is not None
            lengths = f"the {longer} twin made more steps: row {index} (step {row.step}) is in one alone"
            if first is None:
                first = StepsFound(step=row.step, row=index, leaf="(row)", component="host", kind="state", note=lengths)
            break
        rows += 1
        made += not ra.end
        leaves = max(leaves, len(ra.leaves))
        if before is not None:
            drawn |= _moved(before, (ra, rb))
        pairs, unlike = _pairs(ra, rb)
        parted = [pair for pair in pairs if pair[0].fingerprint != pair[1].fingerprint]
        counted = [pair for pair in parted if not is_aside(pair[0])]
        kept = kept or any(pair[0].kind not in PASSING for pair in counted)
        kept = kept or any(not name.startswith((*PASSING, "generator", "threads.")) for name in unlike)
        trained = trained or any(leaf.kind == "gradient" for leaf in ra.leaves)
        if unlike and not counted and first is None:
            first = _unlike(ra, index, unlike)
        if first is None and counted:
            found_rows = (ra, rb)
            first = StepsFound(step=ra.step, row=index, at_end=ra.end)
        elif first is None:
            ignored |= {pair[0].name for pair in parted if is_generator(pair[0])}
        elif before is not None and found_rows is not None and found_rows[0] is before[0]:
            drawn |= _moved(before, (ra, rb))
            if rows == 2 and before[0].step > 0:
                late = _agreeing(pairs)
        if first is not None and len(growth) < GROWTH_KEPT:
            growth.append(_growth(ra.step, counted))
        before = (ra, rb)
    if rows < 2:
        ignored.clear()  # whether anybody drew from them shows from one row to the next
    if first is None:
        return StepsFound(rows=rows, made=made, leaves=leaves, ignored=sorted(ignored), note=lengths)
    if found_rows is None:
        found = _with(first, growth=growth, rows=rows, leaves=leaves, ignored=sorted(ignored))
    else:
        found = _classed(found_rows, first, drawn - late, growth, rows, leaves, ignored, lengths, declared)
    return dataclasses.replace(found, made=made, kept=kept or declared or not trained or bool(lengths))


def _agreeing(pairs: Sequence[tuple[Leaf, Leaf]]) -> set[str]:
    """Generators with equal states. The first row of a resumed run takes them late, after its first batch was drawn;
    one that lacks its state goes on to differ."""
    return {a.name for a, b in pairs if is_generator(a) and a.fingerprint == b.fingerprint}


def _classed(
    rows: tuple[Row, Row], first: StepsFound, drawn: set[str], growth: list[GrowthPoint], count: int, leaves: int,
    ignored: set[str], note: str, declared: bool,
) -> StepsFound:  # fmt: skip
    pairs, _ = _pairs(*rows)
    parted = [pair for pair in pairs if pair[0].fingerprint != pair[1].fingerprint]
    unused = {pair[0].name for pair in parted if is_generator(pair[0]) and pair[0].name not in drawn}
    unused -= {pair[0].name for pair in parted if _of_a_thread(pair[0])}
    parted = [pair for pair in parted if pair[0].name not in unused and not _of_a_thread(pair[0])]
    origin = parted[0][0] if declared else _origin([pair[0] for pair in parted])
    read = _reads(rows[0], declared)
    reads = origin.name in read
    classed = [_parted(pair, origin, rows[0].step, first.row, read) for pair in parted]
    classed.sort(key=lambda leaf: leaf.role != ORIGIN)
    return StepsFound(
        step=rows[0].step,
        row=first.row,
        leaf=origin.name,
        component=component_of(origin),
        kind=origin.kind,
        reads=reads,
        at_end=rows[0].end,
        parted=classed,
        growth=growth,
        rows=count,
        leaves=leaves,
        note=note,
        ignored=sorted(ignored | unused) if count > 1 else [],
        declared=declared,
    )


def _of_a_thread(leaf: Leaf) -> bool:
    """A generator that a thread made for itself: how far it has drawn when a step ends is a matter of time."""
    return is_generator(leaf) and ".thread" in leaf.name


def _reads(row: Row, declared: bool) -> set[str]:
    """Leaves that the step reads: by their kind, or in a declared order those before the first that it made."""
    leaves: Iterable[Leaf] = row.leaves
    if declared:
        leaves = itertools.takewhile(lambda leaf: _read_rank(leaf) is not None, leaves)
    return {leaf.name for leaf in leaves if _read_rank(leaf) is not None}


def _origin(leaves: Sequence[Leaf]) -> Leaf:
    """Of what parted: a state as it is read comes before all that was made of it; else the first in dataflow order."""
    reads = [(rank, i) for i, leaf in enumerate(leaves) if (rank := _read_rank(leaf)) is not None]
    return leaves[min(reads)[1]] if reads else leaves[0]


def _read_rank(leaf: Leaf) -> int | None:
    if is_generator(leaf):
        return 0
    return READ.index(leaf.kind) if leaf.kind in READ else None


def component_of(leaf: Leaf) -> str:
    """A module's path where the leaf has one, else what it belongs to."""
    if is_generator(leaf):
        return "generator"
    if leaf.kind == "input" or leaf.name == "threads.input":
        return "data"
    if leaf.component:
        return leaf.component
    return {
        "weight": "weights",
        "moment": "optimizer",
        "outcome": "loss",
        "activation": "loss",
        "gradient": "weights",
    }.get(leaf.kind, "state")


def _parted(pair: tuple[Leaf, Leaf], origin: Leaf, step: int, row: int, read: set[str]) -> Parted:
    leaf = pair[0]
    if leaf.name == origin.name:
        if leaf.name in read and row > 0:
            why = f"step {step} reads it parted, though all of the row before agrees: what ran between made it differ"
        elif leaf.name in read:
            why = "it is parted when the first step reads it: the start of the program made the difference"
        else:
            why = "all that stands before it in dataflow order agrees, the states that the step reads too"
        role = ORIGIN
    elif leaf.name in read and origin.name in read:
        role = INHERITED
        why = f"read parted by the same step as {origin.name}, which stands nearer to where such a state is made"
    else:
        role, why = INHERITED, f"stands after {origin.name} in dataflow order"
    return Parted(
        leaf=leaf.name,
        kind=leaf.kind,
        component=component_of(leaf),
        role=role,
        why=why,
        a=pair[0].checksum,
        b=pair[1].checksum,
    )


def _moved(before: tuple[Row, Row], now: tuple[Row, Row]) -> set[str]:
    """Generators whose state changed from one row to the next in both twins: the step draws. One that is seeded anew,
    or drawn from, in one twin alone matters to nobody until both draw."""
    moved = []
    for old, new in zip(before, now, strict=True):
        was = {leaf.name: leaf.fingerprint for leaf in old.leaves if is_generator(leaf)}
        moved.append({leaf.name for leaf in new.leaves if leaf.name in was and was[leaf.name] != leaf.fingerprint})
    return moved[0] & moved[1]


def _pairs(ra: Row, rb: Row) -> tuple[list[tuple[Leaf, Leaf]], list[str]]:
    """Leaves that both rows have, in A's order, and the names that only one has."""
    other = {leaf.name: leaf for leaf in rb.leaves}
    pairs = [(leaf, other[leaf.name]) for leaf in ra.leaves if leaf.name in other]
    mine = {leaf.name for leaf in ra.leaves}
    unlike = [leaf.name for leaf in ra.leaves if leaf.name not in other]
    return pairs, unlike + [leaf.name for leaf in rb.leaves if leaf.name not in mine]


def _unlike(row: Row, index: int, names: Sequence[str]) -> StepsFound | None:
    """A row that has other leaves in one twin; generators that only one twin made count as nothing."""
    real = [name for name in names if not name.startswith(("generator", "threads."))]
    if not real:
        return None
    note = f"step {row.step} has other leaves in one twin: {', '.join(real[:5])}"
    return StepsFound(
        step=row.step,
        row=index,
        leaf=real[0],
        component="host",
        kind="state",
        note=note,
        parted=[Parted(leaf=real[0], kind="state", component="host", role=ORIGIN, why=note)],
    )


def _growth(step: int, parted: Sequence[tuple[Leaf, Leaf]]) -> GrowthPoint:
    largest = relative = 0.0
    for a, b in parted:
        if a.checksum is None or b.checksum is None:
            continue
        delta = abs(a.checksum - b.checksum)
        if math.isfinite(delta):
            largest = max(largest, delta)
            scale = max(abs(a.checksum), abs(b.checksum))
            relative = max(relative, delta / scale if scale else 0.0)
    return GrowthPoint(step=step, leaves_parted=len(parted), max_abs=largest, max_rel=relative)


def _with(found: StepsFound, **changes: object) -> StepsFound:
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


def _beside(a: Iterable[Row], b: Iterable[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows in pairs; what a resumed run did not make again is passed over at its start."""
    left, right = iter(a), iter(b)
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None and one.step != other.step:
        if one.step < other.step:
            one = next(left, None)
        else:
            other = next(right, None)
    if one is not None or other is not None:
        yield one, other
    yield from itertools.zip_longest(left, right)

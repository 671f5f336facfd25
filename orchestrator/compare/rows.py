"""Two parted runs, row by row: fingerprints by numpy a block at a time, rows of diag.jsonl only where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foxrun.files import unpacked
from foxrun.jsonio import loads
from foxrun.problems import ContractError
from foxrun.reader import Run
from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import (
    Differences,
    Growth,
    as_float,
    distance,
    of_leaf,
    of_missing_row,
    of_values,
    parted_value,
)
from orchestrator.compare.policy import Policy
from orchestrator.compare.scan import rows_per_block
from orchestrator.compare.ulp import ulp_distance
from orchestrator.compare.values import REPEATED, ValueDifference, compare_values

DIAG = "diag.jsonl"
BITS_FILE = "bits.u64"
CHECKSUMS = "checksums"
METRICS = "metrics"
_BOM = b"\xef\xbb\xbf"

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Bits = tuple[Words, Words, Flags]  # the same of one row
Block = tuple[Words, Words, Flags]  # A's fingerprints, B's, and where they differ: rows x common leaves


class Line(NamedTuple):
    """A line of diag.jsonl: its number from 1, its text without line end, and whether it had one."""

    number: int
    text: bytes
    ended: bool


def diag_lines(run: Run) -> Iterator[Line]:
    """Every line of diag.jsonl that is not blank, without line ends and BOM."""
    stored = run.stored_name(DIAG)
    if stored is None:
        return
    with unpacked(run.source.open(stored), name=f"{run.label}/{stored}") as stream:
        yield from lines_of(stream)


def lines_of(stream: Iterable[bytes], first: int = 1) -> Iterator[Line]:
    """Every line of a stream that is not blank; the first has the number `first`."""
    for number, raw in enumerate(stream, start=first):
        text = (raw.removeprefix(_BOM) if number == 1 else raw).strip(b" \t\r\n")
        if text:
            yield Line(number, text, raw.endswith(b"\n"))


class RowComparison:
    """Walks two runs in lockstep. `common` names the leaves that both have, in A's dataflow order.

    Raises ContractError for a line that is no JSON object.
    """

    def __init__(self, a: Run, b: Run, policy: Policy, differences: Differences) -> None:
        self.a, self.b = a, b
        self.policy = policy
        self.differences = differences
        self.growth = Growth()
        position_b = {leaf.name: i for i, leaf in enumerate(b.leaves)}
        self.common = [leaf for leaf in a.leaves if leaf.name in position_b]
        self._columns_a = np.array([i for i, leaf in enumerate(a.leaves) if leaf.name in position_b], dtype=np.intp)
        self._columns_b = np.array([position_b[leaf.name] for leaf in self.common], dtype=np.intp)
        self._same_columns = [x.name for x in a.leaves] == [y.name for y in b.leaves]
        self.has_bits = bool(self.common) and a.row_count > 0 and b.row_count > 0
        self._index = {leaf.name: i for i, leaf in enumerate(self.common)} if self.has_bits else {}
        self._order = {leaf.name: i for i, leaf in enumerate(a.leaves)}
        self.ever_parted: Flags = np.zeros(len(self.common), dtype=np.bool_)
        self.values_agreed = 0
        self.json_agreed = 0
        self.rows_agreed = 0
        self.rows_parted = 0
        self.diag_rows = [0, 0]
        self.first: v.Divergence | None = None
        self.parted: list[v.PartedLeaf] = []
        self._first_is_inside = False
        self._repeated: list[str] = []

    def run(self) -> None:
        """Compare every row that both have, then note those that one lacks."""
        self.walk(0, diag_lines(self.a), diag_lines(self.b), self._bits())
        self.note_missing_rows()

    def walk(self, index: int, lines_a: Iterator[Line], lines_b: Iterator[Line], bits_of_rows: Iterable[Block]) -> None:
        """Compare rows side by side, the first of them being row `index` of both runs."""
        for words_a, words_b, parted in bits_of_rows:
            counts = parted.sum(axis=1)
            for i in range(len(parted)):
                line_a, line_b = self._next(lines_a, 0), self._next(lines_b, 1)
                count = int(counts[i])
                bits = (words_a[i], words_b[i], parted[i]) if count else None
                self._row(index, line_a, line_b, bits, count)
                index += 1
        while True:
            line_a, line_b = self._next(lines_a, 0), self._next(lines_b, 1)
            if line_a is None and line_b is None:
                break
            self._row(index, line_a, line_b, None, 0)
            index += 1

    def _next(self, lines: Iterator[Line], side: int) -> Line | None:
        line = next(lines, None)
        self.diag_rows[side] += line is not None
        return line

    def _bits(self) -> Iterator[Block]:
        if not self.has_bits:
            return
        rows = min(self.a.row_count, self.b.row_count)
        step = rows_per_block(8 * max(len(self.a.leaves), len(self.b.leaves)))
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            yield self.block(self.a.bits(start, stop), self.b.bits(start, stop))

    def block(self, raw_a: bytes, raw_b: bytes) -> Block:
        """Fingerprints of the same rows of both runs, the common leaves alone; of rows that both have."""
        words_a = np.frombuffer(raw_a, dtype="<u8").reshape(-1, len(self.a.leaves))
        words_b = np.frombuffer(raw_b, dtype="<u8").reshape(-1, len(self.b.leaves))
        rows = min(len(words_a), len(words_b))
        words_a, words_b = words_a[:rows], words_b[:rows]
        if not self._same_columns:
            words_a, words_b = words_a[:, self._columns_a], words_b[:, self._columns_b]
        parted = words_a != words_b
        self.ever_parted |= parted.any(axis=0)
        self.values_agreed += int(np.count_nonzero(~parted & (words_a != 0)))
        return words_a, words_b, parted

    def _row(
        self,
        index: int,
        line_a: Line | None,
        line_b: Line | None,
        bits: Bits | None,
        count: int,
    ) -> None:
        text_a, text_b = (line.text if line is not None else None for line in (line_a, line_b))
        if count == 0 and (text_a == text_b or text_a is None or text_b is None):
            self.rows_agreed += text_a == text_b
            if self.first is not None:
                step = _step(self._parsed(self.a, line_a), index)
                point = v.GrowthPoint(step=step, leaves_parted=0)
                self.growth.add(lambda: point)
            return
        self._repeated.clear()
        row_a, row_b = self._parsed(self.a, line_a), self._parsed(self.b, line_b)
        found: list[ValueDifference] = []
        if line_a is not None and line_b is not None:
            found = list(compare_values(row_a, row_b, self._agreed))
            if self.policy.ignore:
                found = [d for d in found if not self.policy.ignores(d)]
            if not found:
                found = [ValueDifference((name,), REPEATED) for name in self._repeated]
        if not found and count == 0:
            self.rows_agreed += 1
            return
        self.rows_parted += 1
        step = _step(row_a, index)
        inside = self._note(f"step {step} (row {index})", bits, count, row_a, row_b, found)
        if self.first is None or (self._first_is_inside and not inside):
            self._first_is_inside = inside
            self._describe(step, index, bits, row_a, row_b, found)
        self.growth.add(lambda: self._point(step, bits, count, found))

    def _agreed(self, count: int) -> None:
        self.json_agreed += count

    def _parsed(self, run: Run, line: Line | None) -> Any:
        if line is None:
            return {}
        name = f"{run.label}/{run.stored_name(DIAG)}"
        try:
            value = loads(line.text, name=name, line=line.number, on_duplicate=self._repeated.append)
        except ContractError as error:
            if line.ended:
                raise
            what = f"the last line is cut: {error.what}"
            raise ContractError(what, file=name, line=line.number, remedy="let it finish, or run it again") from None
        if not isinstance(value, dict):
            what = f"the row is {type(value).__name__}, not an object"
            raise ContractError(what, file=name, line=line.number, remedy="write one object a line")
        return value

    def _note(
        self,
        place: str,
        bits: Bits | None,
        count: int,
        row_a: Mapping[str, Any],
        row_b: Mapping[str, Any],
        found: list[ValueDifference],
    ) -> bool:
        """Count the row's differences; whether all of them are inside the tolerance."""
        outside = self.differences.outside
        sums_a, sums_b = _mapping(row_a.get(CHECKSUMS)), _mapping(row_b.get(CHECKSUMS))
        if bits is not None and self.differences.full:
            self.differences.skip(count, outside=count - self._forgiven(bits, count, sums_a, sums_b))
        elif bits is not None:
            for i in np.flatnonzero(bits[2]):
                name = self.common[i].name
                texts = (f"{int(bits[0][i]):016x}", f"{int(bits[1][i]):016x}")
                self.differences.add(
                    v.Difference(file=BITS_FILE, path=f"{place} {name}", kind="changed", a=texts[0], b=texts[1]),
                    inside=self.policy.forgives_leaf(name, sums_a, sums_b),
                )
        for d in found:
            leaf = _leaf(d)
            if leaf is not None and self._is_parted(leaf, bits):
                continue  # its fingerprint was counted
            inside = self.policy.forgives(d, checksum=leaf is not None)
            self.differences.add_value(DIAG, f"{place} {d.name}", d, inside=inside)
        return self.differences.outside == outside

    def _forgiven(self, bits: Bits, count: int, sums_a: Mapping[str, Any], sums_b: Mapping[str, Any]) -> int:
        """How many parted fingerprints of a row a tolerance forgives: only those whose leaf has a checksum can be."""
        if self.policy.fast:
            return count
        if not self.policy.tolerant:
            return 0
        return sum(self._is_parted(name, bits) and self.policy.forgives_leaf(name, sums_a, sums_b) for name in sums_a)

    def _is_parted(self, leaf: str, bits: Bits | None) -> bool:
        index = self._index.get(leaf)
        return bits is not None and index is not None and bool(bits[2][index])

    def _describe(
        self,
        step: int | str,
        index: int,
        bits: Bits | None,
        row_a: Mapping[str, Any],
        row_b: Mapping[str, Any],
        found: list[ValueDifference],
    ) -> None:
        """The first divergence: leaves in dataflow order, then what else the row holds."""
        sums_a, sums_b = _mapping(row_a.get(CHECKSUMS)), _mapping(row_b.get(CHECKSUMS))
        leaves: dict[str, v.PartedLeaf] = {}
        for i in np.flatnonzero(bits[2]) if bits is not None else ():
            assert bits is not None
            leaf = self.common[i]
            a, b = as_float(sums_a.get(leaf.name)), as_float(sums_b.get(leaf.name))
            both = a is not None and b is not None
            leaves[leaf.name] = v.PartedLeaf(
                name=leaf.name,
                component=leaf.component,
                kind=leaf.kind,
                checksum_a=a,
                checksum_b=b,
                fingerprint_a=f"{int(bits[0][i]):016x}",
                fingerprint_b=f"{int(bits[1][i]):016x}",
                delta=b - a if both else None,  # type: ignore[operator]
                ulp=ulp_distance(a, b) if both else None,  # type: ignore[arg-type]
            )
        others: list[tuple[v.PartedLeaf, ValueDifference]] = []
        for d in found:
            name = _leaf(d)
            if name is None:
                others.append((parted_value(_short(d), d), d))
            elif name not in leaves:
                known = next((leaf for leaf in self.a.leaves if leaf.name == name), None)
                component, kind = (known.component, known.kind) if known else ("", "checksum")
                leaves[name] = parted_value(name, d, component=component, kind=kind)
        ordered = sorted(leaves.values(), key=lambda leaf: self._order.get(leaf.name, len(self._order)))
        self.parted = [*ordered, *(leaf for leaf, _ in others)]
        by_value = {name: d for d in found if (name := _leaf(d)) is not None}
        if not self._first_is_inside:  # the line names what is outside the tolerance
            ordered = [leaf for leaf in ordered if not self._inside(leaf, by_value, sums_a, sums_b)]
            others = [(leaf, d) for leaf, d in others if not self.policy.forgives(d)]
        if not ordered:
            self.first = of_values(step, index, others[0][0].name, others[0][1])
        elif ordered[0].fingerprint_a is None:
            self.first = of_values(step, index, ordered[0].name, by_value[ordered[0].name])
        else:
            self.first = of_leaf(step, index, ordered[0])

    def _inside(
        self,
        leaf: v.PartedLeaf,
        by_value: Mapping[str, ValueDifference],
        sums_a: Mapping[str, Any],
        sums_b: Mapping[str, Any],
    ) -> bool:
        if leaf.fingerprint_a is None:
            return self.policy.forgives(by_value[leaf.name], checksum=True)
        return self.policy.forgives_leaf(leaf.name, sums_a, sums_b)

    def _point(self, step: int | str, bits: Bits | None, count: int, found: list[ValueDifference]) -> v.GrowthPoint:
        largest = (0.0, 0.0)
        for d in found:
            leaf = _leaf(d)
            if leaf is None:
                continue
            count += not self._is_parted(leaf, bits)
            a, b = as_float(d.a), as_float(d.b)
            if a is not None and b is not None:
                gap = distance(a, b)
                largest = (max(largest[0], gap[0]), max(largest[1], gap[1]))
        return v.GrowthPoint(step=step, leaves_parted=count, max_abs=largest[0], max_rel=largest[1])

    def note_missing_rows(self) -> None:
        """Rows that one run has and the other lacks, in either file."""
        for file, (a, b) in ((BITS_FILE, (self.a.row_count, self.b.row_count)), (DIAG, tuple(self.diag_rows))):
            if a == b or (file == BITS_FILE and not self.has_bits) or 0 in (a, b):
                continue
            kind = "missing in B" if a > b else "missing in A"
            for row in range(min(a, b), max(a, b)):
                if self.differences.full:
                    self.differences.skip(max(a, b) - row, outside=max(a, b) - row)
                    break
                self.differences.add(v.Difference(file=file, path=f"row {row}", kind=kind))
            if self.first is None or self._first_is_inside:
                self._first_is_inside = False
                self.parted = []
                self.first = of_missing_row(min(a, b), min(a, b), in_a=a > b)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _step(row: Any, index: int) -> int | str:
    step = row.get("step") if isinstance(row, Mapping) else None
    return step if isinstance(step, int) and not isinstance(step, bool) else index


def _leaf(difference: ValueDifference) -> str | None:
    """The leaf whose checksum this is; None for every other value."""
    path = difference.path
    return path[1] if len(path) == 2 and path[0] == CHECKSUMS else None


def _short(difference: ValueDifference) -> str:
    """`loss` for metrics.loss: as people call it."""
    path = difference.path
    return ".".join(path[1:]) if len(path) > 1 and path[0] == METRICS else difference.name

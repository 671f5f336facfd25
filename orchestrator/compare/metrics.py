"""Two plain metric files, row by row: aligned by step where steps allow it, by position otherwise."""

from __future__ import annotations

import fnmatch
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import (
    HEADER_STEP,
    Differences,
    Growth,
    as_float,
    distance,
    of_missing_row,
    of_values,
    parted_value,
)
from orchestrator.compare.metric_table import MetricRow, MetricTable
from orchestrator.compare.tolerance import Tolerance
from orchestrator.compare.values import ValueDifference, compare_values, is_number, planted
from orchestrator.errors import UsageError

# Keys that tell when and where a program ran, not what it computed; only ever used for advice.
_CLOCK = re.compile(
    r"(^|[_./ -])(time|times|date|datetime|timestamp|duration|elapsed|wall|walltime|wallclock|seconds|secs|ms|eta|fps|"
    r"sps|throughput|hostname|host|node_ip|ip|pid|uuid|run_id|run_name|experiment_id|trial_id|experiment_tag|logdir|"
    r"samples_per_second|steps_per_second|per_second|t_start|runtime)($|[_./ -])",
    re.IGNORECASE,
)
_NAMES = 6


@dataclass(frozen=True)
class Pair:
    """Two rows that belong together, one of them perhaps missing."""

    step: int | str
    a: MetricRow | None
    b: MetricRow | None

    @property
    def row(self) -> int:
        """The position in A where it has one, else in B."""
        row = self.a if self.a is not None else self.b
        return row.position if row is not None else 0


def looks_like_clock(name: str) -> bool:
    """Whether a key names wall-clock time, a host, a process, or a run's own name."""
    return bool(_CLOCK.search(name))


def compare_metrics(
    a: MetricTable, b: MetricTable, *, tolerance: Tolerance | None = None, ignore: tuple[str, ...] = ()
) -> v.Verdict:
    """The verdict on two metric files. Raises UsageError when they are of different formats."""
    tolerance = tolerance or Tolerance()
    summaries = [v.RunSummary(label=table.label, rows=len(table.rows)) for table in (a, b)]
    incomplete = _unreadable(a, b)
    if incomplete:
        return v.make(v.INCOMPLETE, incomplete[0], next=incomplete[1], subject="metrics", runs=summaries)
    if a.format != b.format:
        raise UsageError(
            f"{a.label} is {a.format} and {b.label} is {b.format}",
            remedy="compare two files of one format, written by the same program",
        )
    a, b = (_without_ignored(table, ignore) for table in (a, b))
    pairs, notes = _aligned(a, b)
    notes += [str(problem) for table in (a, b) for problem in table.problems]
    found = _Findings(tolerance)
    for pair in pairs:
        found.row(pair)
    if a.header or b.header:
        found.header(a.header, b.header)
    flip = _planted_flip(a)
    agreed = v.Agreement(rows=found.rows_agreed, metrics=found.values_agreed, planted_flip=flip)
    return _verdict(a, b, found, agreed, summaries, notes)


def _unreadable(a: MetricTable, b: MetricTable) -> tuple[str, str] | None:
    """(message, next) when one of the files is cut, damaged or empty."""
    for table in (a, b):
        fatal = [problem for problem in table.problems if problem.fatal]
        if fatal:
            more = f" ({len(fatal)} lines cannot be read)" if len(fatal) > 1 else ""
            where = fatal[0].file if fatal[0].line is None else f"{fatal[0].file}, line {fatal[0].line}"
            return f"{where}: {fatal[0].what}{more}", fatal[0].remedy
    for table in (a, b):
        if not table.rows and not table.header:
            return f"{table.label}: holds no row", "see whether the run that writes it ended well"
    return None


class _Findings:
    """What the rows gave so far."""

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self.differences = Differences()
        self.growth = Growth()
        self.rows_agreed = 0
        self.rows_parted = 0
        self.values_agreed = 0
        self.first: tuple[v.Divergence, list[v.PartedLeaf]] | None = None
        self.first_inside: tuple[v.Divergence, list[v.PartedLeaf]] | None = None
        self.first_not_clock: tuple[int | str, str] | None = None
        self.missing_rows = {"A": 0, "B": 0}
        self.clock_names: dict[str, None] = {}
        self.names: dict[str, None] = {}

    def _count(self, agreed: int) -> None:
        self.values_agreed += agreed

    def row(self, pair: Pair) -> None:
        """Compare the next pair of rows."""
        if pair.a is None or pair.b is None:
            present_a = pair.a is not None
            self.missing_rows["B" if present_a else "A"] += 1
            self.rows_parted += 1
            kind = "missing in B" if present_a else "missing in A"
            self.differences.add(v.Difference(file="rows", path=f"step {pair.step} (row {pair.row})", kind=kind))
            if self.first is None:
                self.first = (of_missing_row(pair.step, pair.row, in_a=present_a), [])
            self.first_not_clock = self.first_not_clock or (pair.step, "row")
            return
        found = list(compare_values(pair.a.values, pair.b.values, self._count))
        if found:
            self._differing("rows", pair.step, pair.row, found)
        else:
            self.rows_agreed += 1
        if self.first is not None or self.first_inside is not None:
            self.growth.add(lambda: self._point(pair.step, found))

    def header(self, a: dict[str, Any], b: dict[str, Any]) -> None:
        """Compare what stands once in each file; last, since it has no step."""
        found = list(compare_values(a, b, self._count))
        if found:
            self._differing("header", HEADER_STEP, 0, found)
            self.rows_parted -= 1

    def _differing(self, file: str, step: int | str, row: int, found: list[ValueDifference]) -> None:
        self.rows_parted += 1
        outside = []
        for d in found:
            inside = self.tolerance.inside((d.name,), d.a, d.b, checksum=True)
            place = f"step {step} (row {row}) {d.name}" if file == "rows" else d.name
            self.differences.add_value(file, place, d, inside=inside)
            if not inside:
                outside.append(d)
                self.names[d.name] = None
        if self.first_inside is None:
            self.first_inside = self._described(step, row, found)
        if outside and self.first is None:
            self.first = self._described(step, row, outside)
        real = next((d for d in outside if not looks_like_clock(d.name)), None)
        if real is not None and self.first_not_clock is None:
            self.first_not_clock = (step, real.name)
        self.clock_names.update({d.name: None for d in outside if looks_like_clock(d.name)})

    @staticmethod
    def _described(step: int | str, row: int, found: list[ValueDifference]) -> tuple[v.Divergence, list[v.PartedLeaf]]:
        """Numbers that were computed first, then texts, then clocks: the headline is to name what went wrong."""
        ranked = sorted(found, key=lambda d: (looks_like_clock(d.name), not (is_number(d.a) and is_number(d.b))))
        return of_values(step, row, ranked[0].name, ranked[0]), [parted_value(d.name, d) for d in ranked]

    @staticmethod
    def _point(step: int | str, found: list[ValueDifference]) -> v.GrowthPoint:
        largest = (0.0, 0.0)
        for d in found:
            x, y = as_float(d.a), as_float(d.b)
            if x is not None and y is not None and not looks_like_clock(d.name):
                gap = distance(x, y)
                largest = (max(largest[0], gap[0]), max(largest[1], gap[1]))
        return v.GrowthPoint(step=step, leaves_parted=len(found), max_abs=largest[0], max_rel=largest[1])


def _without_ignored(table: MetricTable, patterns: tuple[str, ...]) -> MetricTable:
    """The table without what matches a pattern by its dotted name or by its last part; left out, it counts nowhere."""
    if not patterns:
        return table
    rows = [replace(row, values=_left(row.values, patterns)) for row in table.rows]
    return replace(table, rows=rows, header=_left(table.header, patterns))


def _left(value: Any, patterns: tuple[str, ...], prefix: str = "") -> Any:
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        name = prefix + key
        if not any(fnmatch.fnmatchcase(part, pattern) for pattern in patterns for part in (name, key)):
            inner = _left(item, patterns, f"{name}.")
            if inner != {} or item == {}:
                kept[key] = inner
    return kept


def _aligned(a: MetricTable, b: MetricTable) -> tuple[Iterator[Pair], list[str]]:
    notes = []
    irregular = False
    for letter, table in (("A", a), ("B", b)):
        place = _irregular(table)
        if place:
            irregular = True
            notes.append(f"{letter}: {place}; rows are compared by position")
    labelled = all(row.step is not None for table in (a, b) for row in table.rows) and a.step_key == b.step_key
    if labelled and not irregular:
        return _by_step(a.rows, b.rows), notes
    if len(a.rows) == len(b.rows) and _reordered(a, b):
        notes.append("B holds the rows of A in another order: the steps are reordered")
    return _by_position(a.rows, b.rows), notes


def _irregular(table: MetricTable) -> str:
    """The first place where steps repeat or go back; empty when they only grow."""
    steps = [(row.step, row) for row in table.rows if row.step is not None]
    for (before, _), (after, row) in itertools.pairwise(steps):
        if after <= before:
            how = "repeats" if after == before else f"comes after step {before}: the steps are out of order"
            return f"step {after} {how}" + (f" (line {row.line})" if row.line else f" (row {row.position})")
    return ""


def _reordered(a: MetricTable, b: MetricTable) -> bool:
    texts = [[json.dumps(row.values, sort_keys=True, default=str) for row in table.rows] for table in (a, b)]
    return texts[0] != texts[1] and sorted(texts[0]) == sorted(texts[1])


def _by_position(a: list[MetricRow], b: list[MetricRow]) -> Iterator[Pair]:
    for i in range(max(len(a), len(b))):
        x, y = (a[i] if i < len(a) else None), (b[i] if i < len(b) else None)
        known = [row.step for row in (x, y) if row is not None and row.step is not None]
        yield Pair(known[0] if known else i, x, y)


def _by_step(a: list[MetricRow], b: list[MetricRow]) -> Iterator[Pair]:
    """Merge two lists whose steps only grow."""
    i = j = 0
    while i < len(a) or j < len(b):
        step_a = a[i].step if i < len(a) else None
        step_b = b[j].step if j < len(b) else None
        step = min(s for s in (step_a, step_b) if s is not None)
        x, y = (a[i] if step_a == step else None), (b[j] if step_b == step else None)
        i, j = i + (x is not None), j + (y is not None)
        yield Pair(step, x, y)


def _planted_flip(table: MetricTable) -> v.PlantedFlip | None:
    """Change one number of A's middle row in a copy, and see whether the same comparison finds it."""
    for row in [*table.rows[len(table.rows) // 2 :], *table.rows]:
        changed = planted(row.values)
        if changed is None:
            continue
        copy, name = changed
        found = [d.name for d in compare_values(row.values, copy)]
        return v.PlantedFlip(row=row.position, leaf=name, found=found == [name])
    return None


def _verdict(
    a: MetricTable,
    b: MetricTable,
    found: _Findings,
    agreed: v.Agreement,
    summaries: list[v.RunSummary],
    notes: list[str],
) -> v.Verdict:
    fields: dict[str, Any] = {"subject": "metrics", "runs": summaries, "agreed": agreed}
    fields |= {"differences": found.differences.kept, "differences_total": found.differences.total}
    if found.differences.total == 0:
        if agreed.metrics == 0 or (not any(row.values != {} for row in a.rows) and not a.header):
            message = f"{a.label} and {b.label}: nothing was left to compare"
            return v.make(v.INCOMPLETE, message, next="ignore fewer keys, or see what the files hold", **fields)
        if agreed.planted_flip is not None and not agreed.planted_flip.found:
            message = f"a change planted in {agreed.planted_flip.leaf} was not found: this comparison proves nothing"
            return v.make(v.INCOMPLETE, message, next="report this as a bug of foxrun", **fields)
        message = f"{agreed.rows:,} rows and {agreed.metrics:,} values agree"
        return v.make(v.IDENTICAL, message, notes=notes, **fields)
    rows = max(len(a.rows), len(b.rows))
    fields["growth"] = found.growth.points()
    if found.differences.outside == 0 and found.first_inside is not None:
        fields["first_divergence"], fields["parted"] = found.first_inside
        count = found.differences.total
        message = f"{count:,} values differ, each inside its tolerance; {found.rows_parted:,} of {rows:,} rows differ"
        return v.make(v.WITHIN_TOLERANCE, message, notes=notes, **fields)
    assert found.first is not None  # something was outside
    first, fields["parted"] = found.first
    fields["first_divergence"] = first
    message = f"the files part at step {first.step}, {first.leaf}; {found.rows_parted:,} of {rows:,} rows differ"
    for letter, count in found.missing_rows.items():
        if count:
            message += f"; {count:,} rows are missing in {letter}"
    advice = _clock_advice(found)
    if advice:
        notes = [*notes, advice]
    return v.make(v.DRIFT, message, next=_next(a, b, found), notes=notes, **fields)


def _clock_advice(found: _Findings) -> str:
    if not found.clock_names:
        return ""
    names = list(found.clock_names)
    shown = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
    if found.first_not_clock is None:
        return f"only keys that look like a clock, a host or a process differ: {shown}"
    step, name = found.first_not_clock
    return f"keys that look like a clock, a host or a process differ too: {shown}; without them: step {step}, {name}"


def _next(a: MetricTable, b: MetricTable, found: _Findings) -> str:
    words = ["foxrun", "compare", a.label, b.label]
    if found.clock_names:
        ignored = [word for name in list(found.clock_names)[:_NAMES] for word in ("--ignore", name)]
        return f"leave out what may differ: {v.command(*words, *ignored)}"
    command = v.command(*words, "--tolerance", "FILE")
    return f"if these keys may differ: {command}; else compare the run directories, which name the leaf"

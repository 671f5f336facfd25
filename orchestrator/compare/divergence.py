"""Where two runs part first, as the stable line that people grep, and how the difference grows from there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from orchestrator.compare.ulp import ulp_distance
from orchestrator.compare.values import ValueDifference, canonical, is_number, show
from orchestrator.compare.verdict import DIFFERENCES_KEPT, Difference, Divergence, GrowthPoint, PartedLeaf

# Growth is exact for this many rows from the first divergence on, then thinned to a bounded number of points.
EXACT_POINTS = 64
SAMPLED_POINTS = 256

BITS = "bits"
ROW = "row"  # the leaf that the line names when a whole row is missing
SUMMARY_STEP = "summary"  # the step that it names when only eval_summary.json parts
FILE_STEP = "file"
HEADER_STEP = "header"


def word(text: str) -> str:
    """A name as one word of the line: in JSON quotes when it holds a blank, a quote, or an equals sign."""
    plain = text and not any(c.isspace() or c in "\"'=" or not c.isprintable() for c in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def divergence(step: int | str, row: int, leaf: str, run_a: str, run_b: str, delta: str) -> Divergence:
    """A Divergence with its line."""
    line = f"FIRST_DIVERGENCE: step={step} leaf={word(leaf)} run_A={run_a} run_B={run_b} delta={delta}"
    return Divergence(step=step, row=row, leaf=leaf, run_a=run_a, run_b=run_b, delta=delta, line=line)


def of_values(step: int | str, row: int, leaf: str, difference: ValueDifference) -> Divergence:
    """Where two JSON values part: delta is B - A when both are numbers of one type, else `bits`."""
    missing = "missing"
    a = missing if difference.kind == "missing in A" else show(difference.a)
    b = missing if difference.kind == "missing in B" else show(difference.b)
    delta = subtract(difference.a, difference.b)
    return divergence(step, row, leaf, a, b, BITS if delta is None else show(delta))


def of_leaf(step: int | str, row: int, leaf: PartedLeaf) -> Divergence:
    """Where two leaves part: by checksum where both exist and differ, else by fingerprint (SPEC section 3)."""
    a, b = leaf.checksum_a, leaf.checksum_b
    if a is not None and b is not None and repr(a) != repr(b):
        return divergence(step, row, leaf.name, show(a), show(b), show(b - a))
    if leaf.fingerprint_a is not None or leaf.fingerprint_b is not None:
        return divergence(step, row, leaf.name, leaf.fingerprint_a or "missing", leaf.fingerprint_b or "missing", BITS)
    shown = ["missing" if value is None else show(value) for value in (a, b)]
    return divergence(step, row, leaf.name, shown[0], shown[1], BITS)


def of_missing_row(step: int | str, row: int, *, in_a: bool) -> Divergence:
    """A row that only one run has."""
    a, b = ("present", "missing") if in_a else ("missing", "present")
    return divergence(step, row, ROW, a, b, BITS)


def subtract(a: Any, b: Any) -> float | int | None:
    """B - A for two numbers of the same type; None otherwise."""
    a, b = canonical(a), canonical(b)
    if not (is_number(a) and is_number(b)) or type(a) is not type(b):
        return None
    return b - a  # type: ignore[no-any-return]


def as_float(value: Any) -> float | None:
    """A number as float64, None for anything else or for an integer that float64 cannot hold."""
    value = canonical(value)
    if not is_number(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def parted_value(name: str, difference: ValueDifference, *, component: str = "", kind: str = "metric") -> PartedLeaf:
    """A parted JSON number in the shape of a parted leaf."""
    a, b = as_float(difference.a), as_float(difference.b)
    if a is None or b is None:
        return PartedLeaf(name=name, component=component, kind=kind, checksum_a=a, checksum_b=b)
    return PartedLeaf(
        name=name, component=component, kind=kind, checksum_a=a, checksum_b=b, delta=b - a, ulp=ulp_distance(a, b)
    )


def distance(a: float, b: float) -> tuple[float, float]:
    """(absolute, relative) difference of two numbers that differ; infinite where one of them is not finite."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf, math.inf
    absolute = abs(b - a)
    largest = max(abs(a), abs(b))
    return absolute, absolute / largest if largest else 0.0


class Growth:
    """Collects one point a parted row: the first 64 exactly, later ones at a stride that doubles as they gather."""

    def __init__(self) -> None:
        self._exact: list[GrowthPoint] = []
        self._sampled: list[GrowthPoint] = []
        self._stride = 1
        self._seen = 0
        self._last: Callable[[], GrowthPoint] | None = None  # when it was not kept

    def add(self, point: Callable[[], GrowthPoint]) -> None:
        """The next row, rows in order, from the first divergence on; its point is made only where it is kept."""
        if len(self._exact) < EXACT_POINTS:
            self._exact.append(point())
            return
        self._last = point
        if self._seen % self._stride == 0:
            self._last = None
            self._sampled.append(point())
            if len(self._sampled) == SAMPLED_POINTS:
                last = self._sampled[-1]
                self._last = lambda: last
                self._sampled = self._sampled[::2]
                self._stride *= 2
        self._seen += 1

    def points(self) -> list[GrowthPoint]:
        """At most 64 + 256 + 1 points in order of rows; the last row is always among them."""
        points = [*self._exact, *self._sampled]
        if self._last is not None:
            points.append(self._last())
        return points


class Differences:
    """Counts differences and keeps the first hundred for people; knows whether all were inside a tolerance."""

    def __init__(self) -> None:
        self.kept: list[Difference] = []
        self.total = 0
        self.outside = 0

    def add(self, difference: Difference, *, inside: bool = False) -> None:
        """One difference; `inside` when a tolerance forgives it."""
        self.total += 1
        if not inside:
            self.outside += 1
        elif len(self.kept) < DIFFERENCES_KEPT:
            difference = replace(difference, kind=f"{difference.kind}, inside the tolerance")
        if len(self.kept) < DIFFERENCES_KEPT:
            self.kept.append(difference)

    @property
    def full(self) -> bool:
        """Whether no further difference will be kept."""
        return len(self.kept) >= DIFFERENCES_KEPT

    def skip(self, count: int, *, outside: int) -> None:
        """So many more that need no description, `outside` of them outside every tolerance."""
        self.total += count
        self.outside += outside

    def add_value(self, file: str, path: str, found: ValueDifference, *, inside: bool = False) -> None:
        """A difference of two JSON values."""
        if len(self.kept) >= DIFFERENCES_KEPT:
            self.total += 1
            self.outside += not inside
            return
        a = "" if found.kind == "missing in A" else show(found.a)
        b = "" if found.kind == "missing in B" else show(found.b)
        self.add(Difference(file=file, path=path, kind=found.kind, a=a, b=b), inside=inside)

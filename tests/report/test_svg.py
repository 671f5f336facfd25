"""The growth charts: inside their frame, honest about zero and non-finite values, small for any number of steps."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from orchestrator.compare.verdict import GrowthPoint
from orchestrator.report import svg
from tests.report import samples


def chart(points: list[GrowthPoint], index: int) -> ElementTree.Element:
    return ElementTree.fromstring(str(svg.growth_charts(points)[index][1]))


def labels(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter("text")]


def test_no_points_give_no_chart() -> None:
    assert svg.growth_charts([]) == []


def test_equal_checksums_give_the_chart_of_leaves_alone() -> None:
    points = [GrowthPoint(step=i, leaves_parted=1) for i in range(5)]
    assert [caption for caption, _ in svg.growth_charts(points)] == ["Leaves that part, by step"]


def test_both_charts_name_their_axes_and_describe_what_they_show() -> None:
    points = [GrowthPoint(step=10 * i, leaves_parted=i + 1, max_abs=10.0 ** (i - 7)) for i in range(8)]
    leaves, size = chart(points, 0), chart(points, 1)
    assert leaves.findtext("title") == "Leaves that part, by step"
    assert leaves.findtext("desc") == "1 leaf part at step 0, 8 at step 70; at most 8."
    assert size.findtext("desc") == "From 1e-07 to 1; at most 1."
    assert labels(leaves)[0] == "leaves"
    assert labels(size)[0] == "|B \N{MINUS SIGN} A|"
    assert labels(leaves)[-1] == labels(size)[-1] == "step"
    assert labels(size)[1:5] == ["1e-7", "1e-5", "1e-3", "1e-1"]
    assert labels(leaves)[1:-1] == ["0", "2", "4", "6", "8", "0", "20", "40", "60"]


def test_a_decade_takes_the_same_height_everywhere() -> None:
    points = [GrowthPoint(step=i, leaves_parted=1, max_abs=10.0 ** (i - 3)) for i in range(5)]
    line = next(p for p in chart(points, 1).iter("path") if p.get("class") == "line")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line.get("d", ""))]
    assert len(heights) == 5
    assert {round(a - b, 0) for a, b in itertools.pairwise(heights)} == {round((heights[0] - heights[-1]) / 4, 0)}


@pytest.mark.parametrize(
    "points",
    [
        samples.growth(25_000),
        samples.extreme().growth,
        [GrowthPoint(step=7, leaves_parted=3, max_abs=0.25)],
        [GrowthPoint(step=2**70, leaves_parted=3, max_abs=math.inf), GrowthPoint(step="x", leaves_parted=0)],
        [GrowthPoint(step=i, leaves_parted=5, max_abs=1.0) for i in (9, 3, 3, 5)],
        [GrowthPoint(step=i, leaves_parted=5, max_abs=(0.0, 1e-300)[i % 2]) for i in range(9)],
    ],
    ids=["many", "extreme", "one", "odd-steps", "out-of-order", "zeros"],
)
def test_everything_is_drawn_inside_the_frame(points: list[GrowthPoint]) -> None:
    for _, markup in svg.growth_charts(points):
        assert len(markup) < 12_000
        root = ElementTree.fromstring(str(markup))
        for path in root.iter("path"):
            d = path.get("d", "")
            assert "nan" not in d
            assert "inf" not in d
            for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", d):
                assert 0 <= float(x) <= svg.WIDTH
                assert 0 <= float(y) <= svg.HEIGHT
            assert all(0 <= float(y) <= svg.HEIGHT for y in re.findall(r"V(-?[\d.]+)", d))
            assert all(0 <= float(x) <= svg.WIDTH for x in re.findall(r"H(-?[\d.]+)", d))


def test_values_that_are_not_finite_are_marked_and_named() -> None:
    points = [
        GrowthPoint(step=i, leaves_parted=1, max_abs=value) for i, value in enumerate((1e-6, math.nan, math.inf, 1.0))
    ]
    root = chart(points, 1)
    assert sum(path.get("class") == "bad" for path in root.iter("path")) == 2
    assert root.findtext("desc") == (
        "From 1e-06 to 1; at most 1. Crosses at the top: the difference is not a finite number (from step 1)."
    )


def test_thinning_keeps_the_largest_of_each_stretch() -> None:
    points = [svg.Point(float(i), str(i), 1, 1e-9) for i in range(10_000)]
    points[7_777] = svg.Point(7_777.0, "7777", 500, 3.0)
    points[9_000] = svg.Point(9_000.0, "9000", 1, math.nan)
    thin = svg.reduce(points)
    assert len(thin) == svg.POINTS
    assert thin[0].step == "0"
    assert max(p.leaves for p in thin) == 500
    assert sorted(p.difference for p in thin if p.difference > 1e-9) == [3.0]
    assert sum(math.isnan(p.difference) for p in thin) == 1


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 1]), (0, 5, [0, 1, 2, 3, 4, 5]), (0, 711, [0, 200, 400, 600]), (2, 251, [50, 100, 150, 200, 250]),
        (7, 7, [7]), (0, 10**12, [0, 2 * 10**11, 4 * 10**11, 6 * 10**11, 8 * 10**11, 10**12]),
    ],
)  # fmt: skip
def test_ticks_are_round_numbers(low: int, high: int, expected: list[int]) -> None:
    assert svg.nice_ticks(low, high) == expected

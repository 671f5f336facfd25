import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.compare.ulp import ulp_distance
from orchestrator.compare.values import (
    compare_values,
    count_values,
    planted,
    show,
)

NAN2 = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        (1.5, 1.5, None),
        (0.0, -0.0, "changed"),
        (-0.0, -0.0, None),
        (math.nan, math.nan, None),
        (math.nan, NAN2, None),
        (math.nan, "NaN", None),
        (math.inf, "Infinity", None),
        (math.inf, -math.inf, "changed"),
        (math.nan, "nan", "changed type"),
        (math.nan, None, "changed type"),
        (math.nan, 0.0, "changed"),
        (1, 1.0, "changed type"),
        (1, True, "changed type"),
        (0, False, "changed type"),
        (1, "1", "changed type"),
        (None, 0, "changed type"),
        ("a", "b", "changed"),
        (2**80, 2**80 + 1, "changed"),
        (1.0, math.nextafter(1.0, 2), "changed"),
        ({}, [], "changed type"),
        ({}, {}, None),
        ([], [], None),
        ({"a": 1}, [1], "changed type"),
        ({"a": {}}, {"a": None}, "changed type"),
    ],
)
def test_equality_is_of_bits_and_types(a: Any, b: Any, kind: str | None) -> None:
    found = list(compare_values({"x": a}, {"x": b}))
    assert [d.kind for d in found] == ([] if kind is None else [kind])


def test_differences_come_in_the_order_of_a_then_what_b_has_more() -> None:
    a = {"z": 1, "y": {"k": [1, 2, 3]}, "gone": 0}
    b = {"new": 5, "y": {"k": [1, 9]}, "z": 2}
    agreed: list[int] = []
    found = [(d.name, d.kind) for d in compare_values(a, b, agreed.append)]
    assert found == [
        ("z", "changed"),
        ("y.k.1", "changed"),
        ("y.k.2", "missing in B"),
        ("gone", "missing in B"),
        ("new", "missing in A"),
    ]
    assert agreed == [1]


def test_null_is_a_value_and_not_absence() -> None:
    assert [d.kind for d in compare_values({"a": None}, {})] == ["missing in B"]


def test_depth_is_not_limited_by_the_stack_of_python() -> None:
    deep: Any = 1
    other: Any = 2
    for _ in range(3_000):
        deep, other = [deep], [other]
    assert len(list(compare_values(deep, other))) == 1


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner))


@given(values)
def test_a_value_agrees_with_itself_and_every_part_is_counted(value: Any) -> None:
    agreed: list[int] = []
    assert list(compare_values(value, value, agreed.append)) == []
    assert agreed == [count_values(value)]


@given(values)
def test_a_planted_change_is_found_where_it_was_planted(value: Any) -> None:
    changed = planted(value)
    if changed is not None:
        assert [d.name for d in compare_values(value, changed[0])] == [changed[1]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1, "1"),
        ("NaN", "NaN"),
        (-math.inf, "-Infinity"),
        ("a b", '"a b"'),
        (None, "null"),
        (True, "true"),
    ],
)
def test_values_are_shown_exactly(value: Any, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (1.0, 1.0, 0),
        (1.0, 1.0 + 2**-52, 1),
        (0.0, -0.0, 0),
        (5e-324, -5e-324, 2),
        (1.0, math.nan, None),
        (math.inf, 1.0, None),
        (-1.0, math.nextafter(-1.0, -2), 1),
    ],
)
def test_ulp_distance(a: float, b: float, distance: int | None) -> None:
    assert ulp_distance(a, b) == distance


def test_integers_beyond_what_python_prints_are_described() -> None:
    assert show(10**5000) == "int of 16610 bits"

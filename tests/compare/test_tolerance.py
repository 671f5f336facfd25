import math

import pytest

from orchestrator.compare.tolerance import Rule, Tolerance, checked_rtol, mode_0_inside, parse_tolerance
from orchestrator.errors import UsageError


@pytest.mark.parametrize(
    ("bounds", "a", "b", "inside"),
    [
        ({"abs": 0.5}, 1.0, 1.5, True),
        ({"abs": 0.5}, 1.0, 1.6, False),
        ({"rel": 0.1}, 100.0, 90.0, True),
        ({"rel": 0.1}, 90.0, 101.0, False),
        ({"ulp": 1}, 1.0, math.nextafter(1.0, 2), True),
        ({"ulp": 1}, 1.0, 1.0 + 2**-51, False),
        ({"abs": 0.0}, 0.0, -0.0, True),
        ({"abs": 1e9}, math.nan, 1.0, False),
        ({"rel": 1.0}, math.inf, 1.0, False),
        ({"abs": 0.1, "rel": 0.5}, 1.0, 1.4, True),
        ({"abs": 1.0}, 3, 4, True),
    ],
)
def test_a_difference_is_inside_when_it_meets_one_bound(bounds: dict, a: float, b: float, inside: bool) -> None:
    assert Tolerance(rules=(Rule(pattern="*", **bounds),)).inside(("x",), a, b) is inside


def test_the_first_matching_pattern_decides() -> None:
    tolerance = Tolerance(rules=(Rule(pattern="q_*", abs=0.0), Rule(pattern="*_grad", abs=9.0)))
    assert not tolerance.inside(("q_grad",), 1.0, 2.0)
    assert tolerance.inside(("pi_grad",), 1.0, 2.0)
    assert not tolerance.inside(("loss",), 1.0, 2.0)


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (None, 1.0), ("1", "2"), (True, False)])
def test_types_and_texts_are_never_forgiven(a: object, b: object) -> None:
    assert not Tolerance(rules=(Rule(pattern="*", abs=9.0),)).inside(("x",), a, b)


def test_rtol_is_for_checksums_alone() -> None:
    tolerance = Tolerance(rtol=0.1)
    assert tolerance.inside(("x",), 1.0, 1.01, checksum=True)
    assert not tolerance.inside(("x",), 1.0, 1.01)


def test_yaml_and_json_say_the_same_and_yaml_exponents_are_numbers() -> None:
    rules = (Rule(pattern="*_grad", rel=1e-5), Rule(pattern="x", abs=1.0, ulp=4))
    assert parse_tolerance('"*_grad": {rel: 1e-5}\nx: {abs: 1.0, ulp: 4}\n', "t.yaml") == rules
    assert parse_tolerance('{"*_grad": {"rel": 1e-5}, "x": {"abs": 1.0, "ulp": 4}}', "t.json") == rules


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a mapping of key patterns"),
        ("[1]", "a mapping of key patterns"),
        ("x: 1", "'x' needs bounds out of abs, rel, ulp"),
        ("x: {}", "'x' needs bounds"),
        ("x: {rtol: 1}", "unknown bound 'rtol'"),
        ("x: {abs: -1}", "finite number, 0 or more"),
        ("x: {abs: .nan}", "finite number, 0 or more"),
        ("x: {abs: true}", "finite number, 0 or more"),
        ("x: {ulp: 1.5}", "whole number"),
        ("a: b: c", "line 1: neither YAML nor JSON"),
    ],
)
def test_a_bad_tolerance_names_the_file_and_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        parse_tolerance(text, "my.yaml")
    assert "my.yaml" in str(caught.value)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_bad_rtol_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="rtol"):
        checked_rtol(value)


@pytest.mark.parametrize(
    ("a", "b", "inside"),
    [
        (10_000.0, 10_000.99, True),
        (10_000.0, 10_001.0, False),  # a dollar
        (500.0, 500.51, False),  # 0.1 % of the larger is 0.50051
        (500.0, 500.4, True),
        (0.5, 0.6, False),
        (0.0, -0.0, True),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (None, 1.0, False),
        (1000, 1000, True),
    ],
)
def test_mode_0_tolerates_less_than_a_dollar_and_less_than_a_thousandth(a: object, b: object, inside: bool) -> None:
    assert mode_0_inside(a, b) is inside

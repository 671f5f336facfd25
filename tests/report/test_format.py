"""Values, differences and commands as the report prints them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from orchestrator.report import format as fmt


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (None, "–"), (True, "true"), (False, "false"), (0.1, "0.1"), (-0.0, "-0.0"), (5e-324, "5e-324"),
        (1.0, "1.0"), (1, "1"), (math.nan, "NaN"), (-math.inf, "-Infinity"), ("", ""),
        ({"b": 1, "a": [None]}, '{"a": [null], "b": 1}'),
        (2**64, "18446744073709551616"), ("é<", "é<"),
    ],
)  # fmt: skip
def test_a_value_is_printed_without_loss(item: Any, expected: str) -> None:
    assert fmt.value(item) == expected


def test_a_long_value_says_what_was_left_out() -> None:
    assert fmt.cut("x" * 400) == "x" * 400
    assert fmt.cut("a" * 500 + "z" * 500) == "a" * 300 + " … 650 characters … " + "z" * 50


def test_an_integer_too_long_for_decimal_is_printed_all_the_same() -> None:
    assert fmt.value(16**5000).startswith("0x1000")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (None, ""), (0.0, "0"), (0, "0"), (7.000000000090267e-07, "+7e-07"), (-0.0325, "−0.0325"), (12, "+12"),
        (-18_204, "−18204"), (math.nan, "NaN"), (-math.inf, "-Infinity"),
    ],
)  # fmt: skip
def test_a_difference_has_a_sign_and_four_digits(number: Any, expected: str) -> None:
    assert fmt.signed(number) == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (184_000.5234, "+$184,000.52"), (-184_000.5234, "−$184,000.52"), (0.0, "$0.00"),
        (0.001, "+$0.001"), (3, "+$3.00"),
        (1e300, "+$1.000e+300"), (-1e300, "−$1.000e+300"), ("12 USD", "12 USD"), (math.nan, "NaN"), (True, "true"),
    ],
)  # fmt: skip
def test_dollars(amount: Any, expected: str) -> None:
    assert fmt.dollars(amount, signed=True) == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(None, ""), (math.nan, ""), (0.0, "0 %"), (-13.0228, "−13.02 %"), (0.00123, "+0.00123 %"), (1e12, "+1e+12 %")],
)
def test_per_cent(amount: float | None, expected: str) -> None:
    assert fmt.percent(amount) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("abc", "abd", ("ab", "c", "d", "")),
        ("x", "y", ("", "x", "y", "")),
        ("1", "10", ("1", "", "0", "")),
        ("", "", ("", "", "", "")),
        ("1.250", "1.350", ("1.", "250", "350", "")),
        (f"run/a/{'x' * 30}", f"run/bb/{'x' * 30}", ("run/", "a", "bb", "/" + "x" * 30)),
        ("z" * 60, "z" * 59, ("z" * 59, "z", "", "")),
    ],
)
def test_two_values_are_parted_into_what_they_share(a: str, b: str, expected: tuple[str, ...]) -> None:
    assert fmt.common(a, b) == expected


@pytest.mark.parametrize(
    ("sentence", "commands"),
    [
        ("foxrun retry name", ["foxrun retry name"]),
        ("foxrun logs n --node leg-b, then foxrun retry n", ["foxrun logs n --node leg-b", "foxrun retry n"]),
        ("foxrun compare o/twin1 o/twin2 shows every leaf; foxrun check --only X tries one",
         ["foxrun compare o/twin1 o/twin2", "foxrun check --only X"]),
        ("Run `git bisect start && true`; it helps.", ["git bisect start && true"]),
        ("docs/run-contract.md says what a trainer writes", []),
        ("read /var/foxrun/main.log", []),
        ("see foxrun doctor.", ["foxrun doctor"]),
        ("foxrun check tells whether the trainer parts from itself", ["foxrun check"]),
        ("foxrun compare a.jsonl b.jsonl --rtol 1e-5", ["foxrun compare a.jsonl b.jsonl --rtol 1e-5"]),
        ("hash-seed helps; PYTHONHASHSEED=0 python ...   # or sort: for x in y", ["PYTHONHASHSEED=0 python ..."]),
        ("", []),
    ],
)  # fmt: skip
def test_commands_are_found_in_a_sentence(sentence: str, commands: list[str]) -> None:
    pieces = fmt.pieces(sentence)
    assert [piece.text for piece in pieces if piece.command] == commands
    assert "".join(piece.text for piece in pieces) == sentence.replace("`", "")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("the runs part", "The runs part"),
        ("leg-a: exit 1", "leg-a: exit 1"),
        ("bits.u64 is cut", "bits.u64 is cut"),
        ("2 rows", "2 rows"),
        ("", ""),
    ],
)
def test_a_message_begins_with_a_capital_unless_with_a_name(message: str, expected: str) -> None:
    assert fmt.sentence_case(message) == expected

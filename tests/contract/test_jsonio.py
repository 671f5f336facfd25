"""JSON loses no bit and no type on the way out and in, and bad JSON becomes a message with a place."""

from __future__ import annotations

import io
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foxrun import ContractError, Problem, jsonio


def same(a: Any, b: Any) -> bool:
    """Equal in type and in bits; any NaN equals any NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


WORDS = ("NaN", "Infinity", "-Infinity")
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text().filter(lambda text: text not in WORDS)
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(values)
def test_what_is_written_reads_back_and_is_strict_json(value: Any) -> None:
    text = jsonio.dumps(value)
    assert same(jsonio.loads(text), value)
    assert same(jsonio.loads(text.encode()), value)
    assert same(jsonio.loads(jsonio.pretty(value)), value)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    json.loads(text, parse_constant=refuse)


def test_what_is_written() -> None:
    value = {"b": 1, "a": 1.0, "z": -0.0, "n": [math.nan, math.inf, -math.inf], "tiny": 5e-324, "t": "ü"}
    expected = '{"b":1,"a":1.0,"z":-0.0,"n":["NaN","Infinity","-Infinity"],"tiny":5e-324,"t":"ü"}'
    assert jsonio.dumps(value) == expected


def test_canonical_text_does_not_depend_on_the_order_of_keys() -> None:
    assert jsonio.canonical({"b": {"d": 1, "c": 2}, "a": 0}) == '{"a":0,"b":{"c":2,"d":1}}'
    assert jsonio.canonical({"a": 0, "b": {"c": 2, "d": 1}}) == jsonio.canonical({"b": {"d": 1, "c": 2}, "a": 0})


def test_half_a_surrogate_pair_is_escaped() -> None:
    text = jsonio.dumps({"a": "\ud83d"})
    assert text == '{"a":"\\ud83d"}'
    assert jsonio.loads(text.encode()) == {"a": "\ud83d"}


def test_bare_words_and_strings_read_as_the_same_floats() -> None:
    bare = jsonio.loads('{"a": NaN, "b": [Infinity, -Infinity]}')
    quoted = jsonio.loads('{"a": "NaN", "b": ["Infinity", "-Infinity"]}')
    assert same(bare, quoted)
    assert same(jsonio.loads('"NaN"'), math.nan)


def test_other_spellings_and_keys_stay_strings() -> None:
    assert jsonio.loads('{"NaN": "nan", "b": "NAN", "c": "inf", "d": null}') == {
        "NaN": "nan",
        "b": "NAN",
        "c": "inf",
        "d": None,
    }


def test_integers_and_floats_stay_apart() -> None:
    assert [type(value) for value in jsonio.loads("[1, 1.0, 1e0, -0, -0.0, 0]")] == [
        int,
        float,
        float,
        float,
        float,
        int,
    ]
    assert math.copysign(1, jsonio.loads("-0")) == -1
    assert jsonio.loads('["-0", "2024-01-02", -0, -5, -10]') == ["-0", "2024-01-02", 0.0, -5, -10]


def test_huge_integers_are_exact_as_far_as_python_converts_them() -> None:
    assert jsonio.loads("1" + "0" * 400) == 10**400
    assert jsonio.dumps(10**400) == "1" + "0" * 400
    with pytest.raises(ContractError, match=r"m\.json, line 1: a number cannot be read"):
        jsonio.loads("1" * 5000, name="m.json", line=1)
    with pytest.raises(ContractError, match="cannot be written"):
        jsonio.dumps(1 << 20000)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f.json, line 1: empty"),
        (" \n ", "f.json, line 2: empty"),
        ('{"a": 1', "f.json, line 1: the JSON ends in the middle (after 7 characters)"),
        ('{"a":\n "b', "f.json, line 2: not JSON at column 2: Unterminated string starting at"),
        ("{'a': 1}", "f.json, line 1: not JSON at column 2: Expecting property name enclosed in double quotes"),
        ('{"a": 1} x', "f.json, line 1: not JSON at column 10: Extra data"),
        (b"\xff\xfe{", "f.json: not UTF-8 at byte 0"),
        ("[" * 100_000, "f.json: JSON nested more than 200 deep"),
        ("[" * 300 + "]" * 300, "f.json: JSON nested more than 200 deep"),
        ('{"a": 1, "a": 2}', "f.json: the key 'a' is there twice"),
    ],
)
def test_bad_json_says_what_where_and_what_to_do(text: str | bytes, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        jsonio.loads(text, name="f.json")
    assert str(caught.value).startswith(says)
    assert caught.value.remedy


def test_wide_is_not_deep() -> None:
    assert len(jsonio.loads("[" + ",".join(["[[1]]"] * 1000) + "]")) == 1000


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": {"b": {1, 2}}}, "the value at /a/b is a set"),
        ({"a": [b"x"]}, "the value at /a/0 is a bytes"),
        ({"a": {(1, 2): 3}}, "the key (1, 2) at /a is a tuple"),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        jsonio.dumps(value)
    assert str(caught.value).startswith(says)


def test_a_cycle_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ContractError, match="nested more than 200 deep"):
        jsonio.dumps(cycle)


def lines(data: bytes) -> list[tuple[int, Any]]:
    return list(jsonio.loads_lines(io.BytesIO(data), name="d.jsonl"))


def test_lines_with_bom_crlf_and_blank_lines() -> None:
    assert lines(b'\xef\xbb\xbf{"a":1}\r\n\r\n{"a":2}\r\n \n{"a":3}') == [(1, {"a": 1}), (3, {"a": 2}), (5, {"a": 3})]


def test_no_lines() -> None:
    assert lines(b"") == lines(b"\xef\xbb\xbf") == lines(b"\n\r\n") == []


def test_a_cut_last_line_says_so() -> None:
    (first, second) = lines(b'{"a":1}\n{"a":')
    assert first == (1, {"a": 1})
    assert isinstance(second[1], Problem)
    assert str(second[1]).startswith("d.jsonl, line 2: the last line is cut: the JSON ends in the middle")
    assert second[1].fatal


def test_a_bad_line_does_not_stop_the_others() -> None:
    found = lines(b'{"a":1}\nTraceback (most recent call last):\n\x00\x00\n\xff\n{"a":2}\n')
    assert [number for number, _ in found] == [1, 2, 3, 4, 5]
    assert [isinstance(value, Problem) for _, value in found] == [False, True, True, True, False]


def test_a_repeated_key_is_noticed_and_the_last_one_counts() -> None:
    (first, second) = lines(b'{"a":{"b":1,"b":2}}\n')
    assert str(first[1]) == (
        "d.jsonl, line 1: the key 'b' is there twice, the last one counts; make the writer write each key once"
    )
    assert not first[1].fatal
    assert second == (1, {"a": {"b": 2}})


def test_a_row_of_several_megabytes() -> None:
    row = {"step": 0, "values": [index / 7 for index in range(200_000)]}
    data = jsonio.dumps(row).encode()
    assert len(data) > 3_000_000
    assert lines(data + b"\n" + data[:-10])[0] == (1, row)


def test_an_unbuffered_stream_is_read_in_large_pieces(tmp_path: Any) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n' * 20_000)
    with path.open("rb", buffering=0) as stream:
        assert sum(1 for _ in jsonio.loads_lines(stream)) == 20_000

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.compare.scan import (
    Flip,
    LeafWatch,
    LineCount,
    finds_flip,
    first_byte,
    first_difference,
    plant_flip,
    rechunk,
)


def pack(rows: list[list[int]]) -> bytes:
    return b"".join(struct.pack(f"<{len(row)}Q", *row) for row in rows)


@given(st.lists(st.binary(max_size=9)), st.integers(1, 7))
def test_rechunk_keeps_the_bytes_and_gives_whole_pieces(blocks: list[bytes], size: int) -> None:
    pieces = list(rechunk(blocks, size))
    assert b"".join(pieces) == b"".join(blocks)
    assert all(len(piece) == size for piece in pieces[:-1])
    assert all(0 < len(piece) <= size for piece in pieces[-1:])


@pytest.mark.parametrize(
    ("a", "b", "index"),
    [
        ([b"aaaa", b"bbbb"], [b"aaaa", b"bbbb"], None),
        ([b"aaaabbbb"], [b"aa", b"aabb", b"bb"], None),
        ([b"aaaa", b"bbbb"], [b"aaaa", b"bbbc"], 1),
        ([b"aaaa"], [b"aaaa", b"b"], 1),
        ([], [b"a"], 0),
        ([], [], None),
    ],
)
def test_first_difference_whatever_pieces_the_sources_give(a: list[bytes], b: list[bytes], index: int | None) -> None:
    seen: list[bytes] = []
    assert first_difference(a, b, 4, seen.append) == index
    assert all(piece in (b"aaaa", b"bbbb") for piece in seen)


@given(st.binary(min_size=1, max_size=64), st.data())
def test_first_byte_names_the_byte_that_was_changed(block: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(block) - 1))
    changed = bytearray(block)
    changed[place] ^= 0x10
    assert first_byte(block, bytes(changed)) == place
    assert first_byte(block, block[:place]) == place


words = st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=12)


@given(words, st.integers(1, 4))
def test_the_watch_agrees_with_a_look_at_every_column(rows: list[list[int]], step: int) -> None:
    watch = LeafWatch(3)
    for start in range(0, len(rows), step):
        watch.see(pack(rows[start : start + step]))
    columns = [[row[i] for row in rows] for i in range(3)]
    taken = [sorted({value for value in column if value}) for column in columns]
    assert watch.rows == len(rows)
    assert watch.untaken == sum(value == 0 for row in rows for value in row)
    assert watch.never_changed == ([i for i in range(3) if len(taken[i]) == 1] if len(rows) > 1 else [])
    assert watch.never_taken == [i for i in range(3) if not taken[i]]


@given(st.lists(st.lists(st.integers(1, 2**64 - 1), min_size=5, max_size=5), min_size=1, max_size=9))
def test_a_planted_flip_is_found_at_its_place(rows: list[list[int]]) -> None:
    block = pack(rows)
    flip = plant_flip(block, 5)
    assert flip is not None
    assert finds_flip(block, 5, flip)


def test_no_flip_is_planted_where_no_fingerprint_was_taken() -> None:
    assert plant_flip(pack([[0, 0], [0, 0]]), 2) is None
    assert plant_flip(pack([[0, 7], [0, 0]]), 2) == Flip(row=0, leaf=1, bit=20)


@pytest.mark.parametrize("length", [1, 10, 400])
@given(st.integers(0, 40), st.booleans(), st.integers(1, 997))
def test_lines_are_counted_whatever_pieces_they_come_in(length: int, count: int, ended: bool, size: int) -> None:
    text = b"\n".join([b"x" * length] * count) + (b"\n" if ended and count else b"")
    lines = LineCount()
    for start in range(0, len(text), size):
        lines.see(text[start : start + size])
    assert lines.count == count

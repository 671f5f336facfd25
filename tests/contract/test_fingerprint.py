"""The fingerprint of bytes and buffers: the published vectors, and what must and must not change it."""

from __future__ import annotations

import struct
import sys
from array import array

import numpy as np
import pytest

from foxrun import ContractError, fingerprint
from foxrun.fingerprint import mix

VECTORS = [
    ("float32 []", array("f"), "b7a4712c74562914"),
    ("float32 [0.0]", array("f", [0.0]), "1937da9f8ad16e78"),
    ("float32 [-0.0]", array("f", [-0.0]), "5c606f2c41d91435"),
    ("float32 0..11", array("f", range(12)), "25125554db033f92"),
    ("int64", array("q", [1, -1, 2**62]), "b0916487b93967c3"),
    ("bool", memoryview(b"\x01\x00").cast("?"), "a8abc67543efc93e"),
]


@pytest.mark.parametrize(("data", "expected"), [row[1:] for row in VECTORS], ids=[row[0] for row in VECTORS])
def test_vectors(data: object, expected: str) -> None:
    assert f"{fingerprint(data):016x}" == expected


def test_vector_of_bfloat16_by_its_bytes() -> None:
    assert f"{fingerprint(bytes.fromhex('803f'), 2):016x}" == "23eb4e44b8dceee7"


def test_bytes_with_an_itemsize_are_little_endian_elements() -> None:
    assert fingerprint(struct.pack("<12f", *range(12)), 4) == 0x25125554DB033F92


def test_bytes_without_an_itemsize_are_bytes() -> None:
    assert fingerprint(b"abc") == fingerprint(np.frombuffer(b"abc", np.uint8)) == fingerprint(bytearray(b"abc"), 1)


def test_a_big_endian_buffer_has_the_fingerprint_of_its_values() -> None:
    assert fingerprint(np.arange(12, dtype=">f4")) == 0x25125554DB033F92
    assert fingerprint(np.array([1, -1, 2**62], dtype=">i8")) == 0xB0916487B93967C3


def test_strides_do_not_matter_and_shape_is_read_in_row_major_order() -> None:
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert fingerprint(grid) == 0x25125554DB033F92
    assert fingerprint(np.asfortranarray(grid)) == 0x25125554DB033F92
    assert fingerprint(grid.T) == fingerprint(np.ascontiguousarray(grid.T)) != fingerprint(grid)
    assert fingerprint(np.arange(24, dtype=np.float32)[::2] / 2) == 0x25125554DB033F92


def test_a_complex_number_is_two_elements_real_first() -> None:
    for kind, part in ((np.complex64, np.float32), (np.complex128, np.float64)):
        value = np.array([1 + 2j, complex(3, -0.0)], dtype=kind)
        assert fingerprint(value) == fingerprint(np.array([1, 2, 3, -0.0], dtype=part))


def test_a_zero_dimensional_value_is_one_element() -> None:
    assert fingerprint(np.float32(0.0)) == 0x1937DA9F8AD16E78


def test_a_bool_is_zero_or_one_whatever_byte_is_stored() -> None:
    assert fingerprint(memoryview(b"\x07\x00").cast("?")) == 0xA8ABC67543EFC93E


def test_every_change_of_the_bits_changes_it() -> None:
    base = array("d", [1.0, 2.0, 2.0, 3.0])
    nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    variants = [
        base,
        array("d", [2.0, 1.0, 2.0, 3.0]),
        array("d", [1.0, 2.0, 3.0, 2.0]),
        array("d", [1.0, 2.0, 2.0]),
        array("d", [1.0, 2.0, 2.0, 3.0, 0.0]),
        array("d", [0.0, 1.0, 2.0, 2.0, 3.0]),
        array("d", [1.0, 2.0, 2.0, 3.0000000000000004]),
        array("d", [nan, 2.0, 2.0, 3.0]),
        array("d", [float("nan"), 2.0, 2.0, 3.0]),
        array("Q", [0, 0, 0, 0]),
        array("I", [0, 0, 0, 0]),
        array("H", [0, 0, 0, 0]),
        bytes(4),
        bytes(5),
    ]
    found = {fingerprint(variant) for variant in variants}
    assert len(found) == len(variants)


def test_a_pair_that_cancels_under_xor_does_not_cancel_here() -> None:
    assert fingerprint(array("q", [5, 5])) != fingerprint(array("q", [9, 9])) != fingerprint(array("q", [0, 0]))


def test_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    # An element that makes the sum 0 exists: mix is a bijection, so one can be computed.
    monkeypatch.setattr(
        sys.modules["foxrun.fingerprint"], "header", lambda n, b: (-mix(0x9E3779B97F4A7C15 + 3)) % 2**64
    )
    assert fingerprint(array("Q", [3])) == 1


@pytest.mark.parametrize(
    ("data", "itemsize", "says"),
    [
        (b"abc", 2, "no whole number"),
        (b"abc", 3, "3 bytes have no fingerprint"),
        (array("d", [1.0]), 4, "itemsize 4 was given for elements of 8 bytes"),
        (np.zeros(2, dtype=np.longdouble), None, "16 bytes have no fingerprint"),
        ("text", None, "cannot take a fingerprint of str"),
        ([1.0], None, "cannot take a fingerprint of list"),
    ],
)
def test_what_has_no_fingerprint_is_refused_with_a_remedy(data: object, itemsize: int | None, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        fingerprint(data, itemsize)
    assert says in str(caught.value)
    assert caught.value.remedy

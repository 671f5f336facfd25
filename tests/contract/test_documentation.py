"""The values on the documentation page are those of the code."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from foxrun import fingerprint, jsonio, schema
from foxrun.fingerprint import mix

PAGE = (Path(__file__).parents[2] / "docs" / "run-contract.md").read_text(encoding="utf-8")
WIDTHS = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex64": 4, "int64": 8, "int32": 4, "uint8": 1}
TABLE = re.findall(r"^\| (\w+) `(.*?)` \|(.*?)\| `([0-9a-f]{16})` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("dtype", "values", "stored", "expected"), TABLE)
def test_values(dtype: str, values: str, stored: str, expected: str) -> None:
    raw = bytes.fromhex("".join(re.findall(r"`([0-9a-f]+)`", stored)))
    if "..." in stored:
        raw = struct.pack("<12f", *range(12))
    assert f"{fingerprint(raw, WIDTHS.get(dtype, 1)):016x}" == expected


def test_the_table_is_there() -> None:
    assert len(TABLE) == 14


def test_the_worked_example() -> None:
    raw = struct.pack("<2f", 1.0, -2.0)
    value = fingerprint(raw, 4)
    assert f"stored as `{raw.hex(' ')}`" in PAGE
    assert f"mix(0x204)                               = {mix(0x204):016x}" in PAGE
    assert f"= {value:016x}\n\nIn `bits.u64` it is the eight bytes `{value.to_bytes(8, 'little').hex(' ')}`" in PAGE
    for step in re.findall(r"^    F = ([0-9a-f]{16}) \+ ([0-9a-f]{16}) \+ ([0-9a-f]{16})", PAGE, re.MULTILINE):
        assert sum(int(term, 16) for term in step) % 2**64 == value


def test_every_key_of_the_manifest_is_explained() -> None:
    for key in schema.json_schema("run_manifest")["required"]:
        assert f"`{key}`" in PAGE or f'"{key}"' in PAGE
    example = re.search(r"```json\n(\{\n  \"schema_version\".*?)```", PAGE, re.DOTALL)
    assert example is not None
    assert sorted(jsonio.loads(example[1])) == sorted(schema.json_schema("run_manifest")["required"])

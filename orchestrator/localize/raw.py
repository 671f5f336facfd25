"""Raw dumps of chosen steps, both twins compared byte by byte: the first difference, by how much, of what sort."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

# dtype -> (bytes, struct code of the value, struct code of its bits); bfloat16 is the upper half of a float32.
_FLOATS = {
    "float64": (8, "<d", "<Q"),
    "float32": (4, "<f", "<I"),
    "float16": (2, "<e", "<H"),
    "bfloat16": (2, "", "<H"),
}
_INTEGERS = {"int64": "<q", "int32": "<i", "int16": "<h", "int8": "<b", "uint8": "<B", "bool": "<?"}
_BLOCK = 1 << 20
SUB_CASES = {
    "weight": "weights first",
    "moment": "state first",
    "state": "state first",
    "input": "intermediates first",
    "activation": "intermediates first",
    "outcome": "intermediates first",
    "gradient": "reduced gradients first",
}


def compare_dumps(a: Path, b: Path) -> list[dict[str, Any]]:
    """Compare the dumps of two processes, given their trace folders.

    One object for each step that both dumped: ``step``, ``tensors`` compared, ``parted`` of them, and the first that
    parts, with leaf, kind, sub_case, index (row-major), a, b and ulp (None for what is no finite float).
    """
    a, b = a / "dumps", b / "dumps"
    steps = sorted(_steps(a) & _steps(b))
    found = []
    for step in steps:
        mine, others = _index(a / f"step-{step}"), _index(b / f"step-{step}")
        there = {item["leaf"]: item for item in others}
        parted = []
        for item in mine:
            other = there.get(item["leaf"])
            if other is None or "file" not in item or "file" not in other:
                continue
            place = _first_difference(a / f"step-{step}" / item["file"], b / f"step-{step}" / other["file"])
            if place is not None:
                parted.append((item, other, place))
        entry: dict[str, Any] = {"step": step, "tensors": len(mine), "parted": len(parted)}
        if parted:
            entry |= _described(a / f"step-{step}", b / f"step-{step}", *parted[0])
        found.append(entry)
    return found


def lines(dumps: list[dict[str, Any]]) -> list[str]:
    """One line a step, for people."""
    out = []
    for item in dumps:
        if not item["parted"]:
            out.append(f"step {item['step']}: {item['tensors']} tensors, equal in every byte")
            continue
        ulp = "" if item["ulp"] is None else f", {item['ulp']} ulp"
        out.append(
            f"step {item['step']}: {item['parted']} of {item['tensors']} tensors part, {item['sub_case']}: "
            f"{item['leaf']} at {item['index']}: {item['a']} and {item['b']}{ulp}"
        )
    return out


def not_kept(dumps: list[dict[str, Any]], first: int, last: int) -> str:
    """What is said of the steps ``first`` to ``last`` that no twin, or one alone, came to; "" where all were dumped."""
    begin = max([first, *(item["step"] + 1 for item in dumps)])
    if begin > last:
        return ""
    which = f"step {last}" if begin == last else f"steps {begin} to {last}"
    return f"the tensors of {which} (--dump-steps {first}-{last}): not seen in both twins"


def _steps(dumps: Path) -> set[int]:
    return {int(folder.name[5:]) for folder in dumps.glob("step-*") if (folder / "index.json").is_file()}


def _index(folder: Path) -> list[dict[str, Any]]:
    try:
        value = json.loads((folder / "index.json").read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return value if isinstance(value, list) else []


def _first_difference(a: Path, b: Path) -> int | None:
    """The first byte that differs; a shorter file differs at its end."""
    offset = 0
    with a.open("rb") as one, b.open("rb") as other:
        while True:
            x, y = one.read(_BLOCK), other.read(_BLOCK)
            if x != y:
                unlike = (i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q)
                return offset + next(unlike, min(len(x), len(y)))
            if not x:
                return None
            offset += len(x)


def _described(
    folder_a: Path, folder_b: Path, item: dict[str, Any], other: dict[str, Any], byte: int
) -> dict[str, Any]:
    size = (
        _FLOATS[item["dtype"]][0] if item["dtype"] in _FLOATS else struct.calcsize(_INTEGERS.get(item["dtype"], "<B"))
    )
    index = byte // size
    values = []
    for folder, about in ((folder_a, item), (folder_b, other)):
        with (folder / about["file"]).open("rb") as stream:
            stream.seek(index * size)
            values.append(stream.read(size))
    ulp = None
    if item["dtype"] in _FLOATS and all(len(value) == size for value in values):
        orders = [_ordered(value, item["dtype"]) for value in values]
        ulp = abs(orders[0] - orders[1])
    return {
        "leaf": item["leaf"],
        "kind": item["kind"],
        "sub_case": SUB_CASES.get(item["kind"], "state first"),
        "index": _place(index, item["shape"]),
        "a": _shown(values[0], item["dtype"]),
        "b": _shown(values[1], item["dtype"]),
        "ulp": ulp,
    }


def _place(index: int, shape: list[int]) -> list[int]:
    """Row-major index of an element."""
    place = []
    for size in reversed(shape):
        index, here = divmod(index, size) if size else (index, 0)
        place.append(here)
    return place[::-1]


def _ordered(data: bytes, dtype: str) -> int:
    """An integer that grows with the float; neighbours differ by 1."""
    size, _, code = _FLOATS[dtype]
    bits: int = struct.unpack(code, data)[0]
    top = 1 << (8 * size - 1)
    return bits if bits < top else top - bits


def _shown(data: bytes, dtype: str) -> str:
    if dtype == "bfloat16" and len(data) == 2:
        return repr(struct.unpack("<f", b"\0\0" + data)[0])
    code = _FLOATS[dtype][1] if dtype in _FLOATS else _INTEGERS.get(dtype, "")
    return repr(struct.unpack(code, data)[0]) if code and len(data) == struct.calcsize(code) else data.hex()

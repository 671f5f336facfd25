"""Single changes to a run directory, each as the new bytes of the files that it touches, and what must come of it."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foxrun import fingerprint, jsonio

DIAG, BITS, LEAVES, SUMMARY = "diag.jsonl", "bits.u64", "leaves.json", "eval_summary.json"
DRIFT, INCOMPLETE = 3, 7
WATCHED = "watched"  # the leaf whose arrays are known: watched_array(row) gives them
ELEMENTS = 24

Files = dict[str, bytes | None]


@dataclass(frozen=True)
class Change:
    """What was changed, the new content of each file (None: deleted), and the exit codes that find it once resealed."""

    what: str
    files: Files
    expected: tuple[int, ...] = (DRIFT,)
    rows: int | None = None


@dataclass(frozen=True)
class Base:
    """An unchanged run: its files by name and the names of its leaves."""

    name: str
    files: Mapping[str, bytes]
    leaves: list[str]

    @property
    def rows(self) -> int:
        """Rows of bits.u64."""
        return len(self.files[BITS]) // (8 * len(self.leaves))

    def lines(self) -> list[Any]:
        """The rows of diag.jsonl, parsed."""
        return [jsonio.loads(line) for line in self.files[DIAG].splitlines()]

    def words(self) -> list[int]:
        """All fingerprints, row by row."""
        return list(memoryview(self.files[BITS]).cast("Q"))


def watched_array(row: int) -> bytearray:
    """The float32 array of the watched leaf in a row: ordinary values, a zero at place 3, and a NaN at place 7."""
    numbers = random.Random(row)
    values = [numbers.gauss(0, 1) for _ in range(ELEMENTS)]
    values[3], values[7] = 0.0, math.nan
    return bytearray(struct.pack(f"<{ELEMENTS}f", *values))


def random_change(base: Base, rng: random.Random) -> Change:
    """One of the changes below, at a random place; always one that changes bytes."""
    while True:
        change = rng.choice(CHANGES)(base, rng)
        if change is not None and any(content != base.files.get(name) for name, content in change.files.items()):
            return change


def _pack(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}Q", *words)


def _text(rows: list[Any]) -> bytes:
    return b"".join(jsonio.dumps(row).encode() + b"\n" for row in rows)


def _flipped_bit(base: Base, rng: random.Random) -> Change:
    data = bytearray(base.files[BITS])
    place = rng.randrange(len(data) * 8)
    data[place // 8] ^= 1 << place % 8
    return Change(f"bit {place} of {BITS} flipped", {BITS: bytes(data)})


def _swapped_rows(base: Base, rng: random.Random) -> Change:
    words, width = base.words(), len(base.leaves)
    i, j = rng.sample(range(base.rows), 2)
    rows = [words[k * width : (k + 1) * width] for k in range(base.rows)]
    rows[i], rows[j] = rows[j], rows[i]
    return Change(f"rows {i} and {j} of {BITS} swapped", {BITS: _pack([word for row in rows for word in row])})


def _swapped_elements(base: Base, rng: random.Random) -> Change:
    words, width = base.words(), len(base.leaves)
    row = rng.randrange(base.rows)
    i, j = rng.sample(range(width), 2)
    i, j = row * width + i, row * width + j
    words[i], words[j] = words[j], words[i]
    return Change(f"two fingerprints of row {row} swapped", {BITS: _pack(words)})


def _leaf_recomputed(base: Base, rng: random.Random, what: str, edit: Callable[[bytearray], None]) -> Change | None:
    if WATCHED not in base.leaves:
        return None
    row = rng.randrange(base.rows)
    array = watched_array(row)
    edit(array)
    words = base.words()
    words[row * len(base.leaves) + base.leaves.index(WATCHED)] = fingerprint(bytes(array), 4)
    return Change(f"{what} in {WATCHED}, row {row}", {BITS: _pack(words)})


def _nan_payload(base: Base, rng: random.Random) -> Change | None:
    bit = rng.randrange(22)

    def edit(array: bytearray) -> None:
        word = struct.unpack_from("<I", array, 7 * 4)[0]
        struct.pack_into("<I", array, 7 * 4, word ^ (1 << bit))

    return _leaf_recomputed(base, rng, f"another NaN payload (bit {bit})", edit)


def _minus_zero_in_leaf(base: Base, rng: random.Random) -> Change | None:
    return _leaf_recomputed(base, rng, "-0.0 for 0.0", lambda array: struct.pack_into("<f", array, 3 * 4, -0.0))


def _swapped_in_leaf(base: Base, rng: random.Random) -> Change | None:
    i, j = rng.sample([k for k in range(ELEMENTS) if k not in (3, 7)], 2)

    def edit(array: bytearray) -> None:
        array[4 * i : 4 * i + 4], array[4 * j : 4 * j + 4] = array[4 * j : 4 * j + 4], array[4 * i : 4 * i + 4]

    return _leaf_recomputed(base, rng, f"elements {i} and {j} swapped", edit)


def _untaken(base: Base, rng: random.Random) -> Change:
    words = base.words()
    place = rng.choice([i for i, word in enumerate(words) if word])
    words[place] = 0
    return Change(f"fingerprint {place} not taken", {BITS: _pack(words)})


def _missing_last_row(base: Base, rng: random.Random) -> Change:
    keep = base.files[BITS][: -8 * len(base.leaves)]
    files: Files = {DIAG: _text(base.lines()[:-1]), BITS: keep}
    return Change("the last row is missing", files, rows=base.rows - 1)


def _missing_last_row_of_one(base: Base, rng: random.Random) -> Change:
    if rng.random() < 0.5:
        return Change(f"the last row of {DIAG} is missing", {DIAG: _text(base.lines()[:-1])}, (INCOMPLETE,))
    keep = base.files[BITS][: -8 * len(base.leaves)]
    return Change(f"the last row of {BITS} is missing", {BITS: keep}, (INCOMPLETE,))


def _extra_row(base: Base, rng: random.Random) -> Change:
    rows = base.lines()
    rows.append(rows[-1] | {"step": rows[-1]["step"] + 1})
    more = base.files[BITS] + base.files[BITS][-8 * len(base.leaves) :]
    return Change("an extra row", {DIAG: _text(rows), BITS: more}, rows=base.rows + 1)


def _swapped_lines(base: Base, rng: random.Random) -> Change:
    rows = base.lines()
    i, j = rng.sample(range(len(rows)), 2)
    rows[i], rows[j] = rows[j], rows[i]
    return Change(f"rows {i} and {j} of {DIAG} swapped", {DIAG: _text(rows)})


def _truncated(base: Base, rng: random.Random) -> Change:
    name = rng.choice([name for name in (DIAG, BITS, LEAVES, SUMMARY) if len(base.files[name]) > 2])
    cut = rng.randrange(1, len(base.files[name]) - 1)
    return Change(f"{name} cut after {cut} bytes", {name: base.files[name][:cut]}, (DRIFT, INCOMPLETE))


def _deleted(base: Base, rng: random.Random) -> Change:
    name = rng.choice((DIAG, BITS, LEAVES, SUMMARY))
    return Change(f"{name} deleted", {name: None}, (DRIFT, INCOMPLETE))


def _other_byte(base: Base, rng: random.Random) -> Change | None:
    names = [name for name in base.files if name.startswith("dumps/")]
    if not names:
        return None
    data = bytearray(base.files[names[0]])
    place = rng.randrange(len(data))
    data[place] ^= 1 << rng.randrange(8)
    return Change(f"byte {place} of {names[0]} changed", {names[0]: bytes(data)})


def _swapped_leaf_names(base: Base, rng: random.Random) -> Change:
    value = json.loads(base.files[LEAVES])
    i, j = rng.sample(range(len(value["leaves"])), 2)
    one, other = value["leaves"][i], value["leaves"][j]
    one["name"], other["name"] = other["name"], one["name"]
    return Change(f"the names of leaves {i} and {j} swapped", {LEAVES: json.dumps(value).encode()})


def _other_leaf(base: Base, rng: random.Random) -> Change:
    value = json.loads(base.files[LEAVES])
    leaf = rng.choice(value["leaves"])
    key = rng.choice(("name", "component", "dtype", "shape"))
    leaf[key] = [*leaf["shape"], 1] if key == "shape" else leaf[key] + "_x"
    return Change(f"{key} of a leaf changed", {LEAVES: json.dumps(value).encode()})


def _places(value: Any, wanted: Callable[[Any], bool]) -> list[tuple[Any, Any]]:
    """(container, key) of every scalar that is wanted."""
    found: list[tuple[Any, Any]] = []
    for key, item in value.items():
        if isinstance(item, dict):
            found += _places(item, wanted)
        elif wanted(item):
            found.append((value, key))
    return found


def _json_change(
    base: Base, rng: random.Random, what: str, wanted: Callable[[Any], bool], new: Callable[[Any], Any]
) -> Change | None:
    """Replace one wanted scalar of a random row of diag.jsonl, or of the summary."""
    rows, summary = base.lines(), jsonio.loads(base.files[SUMMARY])
    in_summary = rng.random() < 0.3
    row = rng.randrange(len(rows))
    places = _places(summary if in_summary else rows[row], wanted)
    if not places:
        return None
    container, key = rng.choice(places)
    container[key] = new(container[key])
    where = SUMMARY if in_summary else f"{DIAG} row {row}"
    content = jsonio.dumps(summary).encode() if in_summary else _text(rows)
    return Change(f"{what}: {key} of {where}", {SUMMARY if in_summary else DIAG: content})


def _is_float(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _one_ulp(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "one ulp", _is_float, lambda x: math.nextafter(x, math.inf))


def _sign(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "sign", lambda x: _is_float(x) and x != 0, lambda x: -x)


def _minus_zero(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "-0.0 for 0.0", lambda x: x == 0 and isinstance(x, float), lambda _: -0.0)


def _type_of_int(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "1.0 for 1", _is_int, float)


def _null(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "null for a number", lambda x: _is_float(x) or _is_int(x), lambda _: None)


def _as_text(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "a number as text", lambda x: _is_float(x) or _is_int(x), str)


def _nan_replaced(base: Base, rng: random.Random) -> Change | None:
    new = rng.choice((None, "nan", 0.0, math.inf))
    return _json_change(base, rng, f"{new!r} for NaN", lambda x: isinstance(x, float) and math.isnan(x), lambda _: new)


def _integer(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "integer", _is_int, lambda x: x + rng.choice((-1, 1, 1000)))


def _boolean(base: Base, rng: random.Random) -> Change | None:
    return _json_change(base, rng, "number for a boolean", lambda x: isinstance(x, bool), int)


def _phase(base: Base, rng: random.Random) -> Change | None:
    flip = {"train": "eval", "eval": "train"}
    return _json_change(base, rng, "phase", lambda x: isinstance(x, str) and x in flip, lambda x: flip[x])


def _keys(base: Base, rng: random.Random) -> Change:
    rows = base.lines()
    row = rng.choice(rows)
    part = rng.choice([part for part in (row["checksums"], row["metrics"]) if part])
    key, how = rng.choice(list(part)), rng.choice(("renamed", "missing", "added", "swapped"))
    if how == "added":
        part["another"] = 1.5
    elif how == "swapped":
        other = rng.choice(list(part))
        part[key], part[other] = part[other], part[key]
    else:
        value = part.pop(key)
        if how == "renamed":
            part[f"{key}_x"] = value
    return Change(f"key {how} in {DIAG}", {DIAG: _text(rows)})


def _summary_keys(base: Base, rng: random.Random) -> Change:
    summary = jsonio.loads(base.files[SUMMARY])
    key, how = rng.choice(list(summary)), rng.choice(("renamed", "missing", "added"))
    value = summary[key] if how == "added" else summary.pop(key)
    if how != "missing":
        summary[f"{key}_x"] = value
    return Change(f"key {how} in {SUMMARY}", {SUMMARY: jsonio.dumps(summary).encode()})


CHANGES: tuple[Callable[[Base, random.Random], Change | None], ...] = (
    _flipped_bit,
    _flipped_bit,
    _flipped_bit,
    _swapped_rows,
    _swapped_elements,
    _nan_payload,
    _minus_zero_in_leaf,
    _swapped_in_leaf,
    _untaken,
    _missing_last_row,
    _missing_last_row_of_one,
    _extra_row,
    _swapped_lines,
    _truncated,
    _deleted,
    _other_byte,
    _swapped_leaf_names,
    _other_leaf,
    _one_ulp,
    _one_ulp,
    _sign,
    _minus_zero,
    _type_of_int,
    _null,
    _as_text,
    _nan_replaced,
    _integer,
    _boolean,
    _phase,
    _keys,
    _summary_keys,
)

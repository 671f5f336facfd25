"""Equality of JSON values on IEEE bits, and the list of what differs between two of them.

-0.0 differs from 0.0; NaN equals NaN; 1 and 1.0 differ in type; the order of keys does not matter (SPEC section 3).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

CHANGED = "changed"
CHANGED_TYPE = "changed type"
MISSING_A = "missing in A"
MISSING_B = "missing in B"
REPEATED = "repeated key"  # the last one counts, so the others were not compared

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SHOWN = 80


@dataclass(frozen=True)
class ValueDifference:
    """One place where two values part. `path` is the keys and list positions that lead there."""

    path: tuple[str, ...]
    kind: str
    a: Any = None
    b: Any = None

    @property
    def name(self) -> str:
        """The path with dots, as people write it."""
        return ".".join(self.path)


def canonical(value: Any) -> Any:
    """The float that the strings "NaN", "Infinity" and "-Infinity" stand for in the contract; else the value itself."""
    if isinstance(value, str):
        return _NON_FINITE.get(value, value)
    return value


def is_number(value: Any) -> bool:
    """Whether the value is an int or a float; a bool is neither here."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same_float(a: float, b: float) -> bool:
    """Whether two floats have the same bits; every NaN is the same (JSON keeps no payload)."""
    if a != a or b != b:
        return a != a and b != b
    return a == b and (a != 0.0 or math.copysign(1.0, a) == math.copysign(1.0, b))


def difference_kind(a: Any, b: Any) -> str | None:
    """None when two scalars agree, else how they differ."""
    a, b = canonical(a), canonical(b)
    if type(a) is not type(b):
        return CHANGED_TYPE
    if isinstance(a, float):
        return None if same_float(a, b) else CHANGED
    return None if a == b else CHANGED


def compare_values(a: Any, b: Any, count: Callable[[int], None] = lambda _: None) -> Iterator[ValueDifference]:
    """Every difference between two JSON values, in A's order of keys, then keys that only B has.

    `count` is called with the number of scalars (or empty containers) that agree. A stack: any depth will do.
    """
    stack: list[tuple[tuple[str, ...], Any, Any]] = [((), a, b)]
    agreed = 0
    missing = _Missing
    while stack:
        path, x, y = stack.pop()
        if x is missing or y is missing:
            yield ValueDifference(path, MISSING_A if x is missing else MISSING_B, _known(x), _known(y))
        elif isinstance(x, dict) and isinstance(y, dict) and (x or y):
            keys = [*x, *(key for key in y if key not in x)]
            for key in reversed(keys):
                stack.append(((*path, str(key)), x.get(key, missing), y.get(key, missing)))
        elif isinstance(x, list) and isinstance(y, list) and (x or y):
            for i in range(max(len(x), len(y)) - 1, -1, -1):
                stack.append(((*path, str(i)), x[i] if i < len(x) else missing, y[i] if i < len(y) else missing))
        else:
            kind = difference_kind(x, y)
            if kind is None:
                agreed += 1
            else:
                yield ValueDifference(path, kind, x, y)
    count(agreed)


class _Missing:
    """Stands for a key that is not there; null is a value."""


def _known(value: Any) -> Any:
    return None if value is _Missing else value


def count_values(value: Any) -> int:
    """How many scalars and empty containers a JSON value holds."""
    stack, total = [value], 0
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)) and item:
            stack.extend(item.values() if isinstance(item, dict) else item)
        else:
            total += 1
    return total


def show(value: Any) -> str:
    """A value as printed: floats by repr (non-finite as in the contract), the rest as JSON, long texts cut."""
    value = canonical(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 4096:
        return f"int of {value.bit_length()} bits"  # Python refuses to print integers beyond 4,300 digits
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def planted(value: Any) -> tuple[Any, str] | None:
    """A copy of a JSON value with its middle scalar changed by the least amount, and that scalar's name.

    Floats change by one ulp, integers by 1, texts by a letter. None when there is no scalar.
    """
    places: list[tuple[str, ...]] = []
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, dict) and item:
            stack.extend(((*path, key), inner) for key, inner in reversed(item.items()))
        elif isinstance(item, list) and item:
            stack.extend(((*path, str(i)), item[i]) for i in range(len(item) - 1, -1, -1))
        else:
            places.append(path)
    if not places:
        return None
    place = places[len(places) // 2]
    return _replaced(value, place), ".".join(place)


def _replaced(value: Any, path: tuple[str, ...]) -> Any:
    if not path:
        return _nudged(canonical(value))
    if isinstance(value, dict):
        return {key: _replaced(item, path[1:]) if key == path[0] else item for key, item in value.items()}
    return [_replaced(item, path[1:]) if str(i) == path[0] else item for i, item in enumerate(value)]


def _nudged(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        if not math.isfinite(value):
            return 0.0
        bits = struct.unpack("<Q", struct.pack("<d", value))[0] ^ 1
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    return f"{value}x" if isinstance(value, str) else "planted"

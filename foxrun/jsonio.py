"""Lossless JSON: what is written reads back with the same bits and types, and every file is valid JSON.

Floats are written in their shortest form that reads back exactly; non-finite ones as the strings "NaN", "Infinity" and
"-Infinity". Readers accept those and the bare words, which real trainers write. 1 and 1.0 stay apart, 0.0 and -0.0 too.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from foxrun.problems import ContractError, Problem

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOM = b"\xef\xbb\xbf"
_MINUS_ZERO = re.compile(r"-0(?![.0-9eE])")
DEEPEST = 200  # recursion over a value stays far from Python's own limit


def dumps(obj: Any) -> str:
    """One line of JSON, keys in the order of the mapping. Raises ContractError for what JSON cannot hold exactly."""
    return _dumps(obj, sort_keys=False)


def canonical(obj: Any) -> str:
    """One line of JSON with sorted keys: equal objects give equal text, whatever order they were built in."""
    return _dumps(obj, sort_keys=True)


def pretty(obj: Any) -> str:
    """JSON for people, indented by two, with a newline at the end."""
    return _dumps(obj, sort_keys=False, indent=2) + "\n"


def _dumps(obj: Any, *, sort_keys: bool, indent: int | None = None, plain: bool = False) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    try:
        text = json.dumps(
            obj, ensure_ascii=False, allow_nan=False, separators=separators, sort_keys=sort_keys, indent=indent
        )
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: no UTF-8 holds it, an escape does
        return json.dumps(obj, allow_nan=False, separators=separators, sort_keys=sort_keys, indent=indent)
    except (ValueError, TypeError, RecursionError) as error:
        if not plain:
            return _dumps(_encodable(obj, "", 0), sort_keys=sort_keys, indent=indent, plain=True)
        raise ContractError(
            f"cannot be written as JSON: {error}", remedy="give numbers, strings, lists, dicts"
        ) from None
    return text


def _encodable(obj: Any, path: str, depth: int) -> Any:
    """A copy in which non-finite floats are strings; names the place of what JSON does not have."""
    if depth > DEEPEST:
        raise ContractError(
            f"JSON nested more than {DEEPEST} deep at {path[:80]}", remedy="flatten it, or break the cycle"
        )
    if obj is None or isinstance(obj, (str, bool, int)):
        return obj
    if isinstance(obj, float):
        if math.isfinite(obj):
            return obj
        return "NaN" if math.isnan(obj) else "Infinity" if obj > 0 else "-Infinity"
    if isinstance(obj, Mapping):
        for key in obj:
            if not isinstance(key, str):
                raise ContractError(
                    f"the key {key!r} at {path or '/'} is a {type(key).__name__}", remedy="use strings as keys"
                )
        return {key: _encodable(value, f"{path}/{key}", depth + 1) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [_encodable(value, f"{path}/{index}", depth + 1) for index, value in enumerate(obj)]
    raise ContractError(
        f"the value at {path or '/'} is a {type(obj).__name__}, which JSON does not have",
        remedy="convert it by float(), int(), str() or list()",
    )


def loads(
    text: str | bytes, *, name: str = "", line: int | None = None, on_duplicate: Callable[[str], None] | None = None
) -> Any:
    """Parse one JSON document; the three strings and the bare words for non-finite floats become floats.

    ``on_duplicate`` hears each key that an object repeats (the last value stands); without it that is an error.
    Raises ContractError, naming ``name`` and ``line``, for text that is no JSON.
    """
    remedy = "see what wrote it: a run that was killed leaves such a file"
    try:
        if isinstance(text, (bytes, bytearray)):
            text = bytes(text).removeprefix(_BOM).decode()
        elif text.startswith("\ufeff"):
            text = text[1:]
        duplicates: list[str] = []

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            made = dict(items)
            if len(made) != len(items):
                seen: set[str] = set()
                duplicates.extend(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            return made

        # "-0" is a float to whoever wrote it (Go writes -0.0 so); as an integer it would lose its sign
        parse_int = _int if _MINUS_ZERO.search(text) else None
        value = json.loads(text, object_pairs_hook=pairs, parse_int=parse_int)
        if text.count("{") + text.count("[") > DEEPEST and _is_deeper(value, DEEPEST):
            raise RecursionError
        if '"NaN"' in text or 'Infinity"' in text:
            value = _decoded(value)
    except UnicodeDecodeError as error:
        raise ContractError(f"not UTF-8 at byte {error.start}", file=name, line=line, remedy=remedy) from None
    except json.JSONDecodeError as error:
        at = line if line is not None else error.lineno
        what = "empty" if not text.strip() else f"not JSON at column {error.colno}: {error.msg}"
        if text.strip() and error.pos >= len(text.rstrip()):
            what = f"the JSON ends in the middle (after {len(text)} characters)"
        raise ContractError(what, file=name, line=at, remedy=remedy) from None
    except RecursionError:
        raise ContractError(
            f"JSON nested more than {DEEPEST} deep", file=name, line=line, remedy="flatten it"
        ) from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise ContractError(
            f"a number cannot be read: {str(error).split(';')[0]}", file=name, line=line, remedy="write it as a string"
        ) from None
    for key in duplicates:
        if on_duplicate is None:
            raise ContractError(
                f"the key {key!r} is there twice", file=name, line=line, remedy="make the writer write each key once"
            )
        on_duplicate(key)
    return value


def _int(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


def _is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects are nested more than ``limit`` deep; level by level, without recursion."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def _decoded(value: Any) -> Any:
    """The three strings back to floats, in place."""
    if isinstance(value, str):
        return _NON_FINITE.get(value, value)
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, (str, dict, list)):
                value[key] = _decoded(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (str, dict, list)):
                value[index] = _decoded(item)
    return value


def loads_lines(stream: BinaryIO, *, name: str = "") -> Iterator[tuple[int, Any]]:
    """JSON lines, one at a time: (line number from 1, value), or (line number, Problem) for one that cannot be read.

    Blank lines are passed over; BOM and CRLF are no trouble. A line that repeats a key gives a Problem that is not
    fatal, then its value, the last one standing. Trouble of the stream itself (a cut .gz) gives a last, fatal Problem.
    """
    if isinstance(stream, io.RawIOBase):  # it would be read byte by byte
        buffered = io.BufferedReader(stream, 1 << 20)
        try:
            yield from loads_lines(buffered, name=name)
        finally:
            buffered.detach()  # whoever opened it closes it
        return
    number = 0
    lines = iter(stream)
    while True:
        try:
            raw = next(lines, None)
        except ContractError as error:
            yield number + 1, error.problem(name, number + 1)
            return
        except OSError as error:
            yield number + 1, Problem(name, number + 1, f"cannot be read: {error}", "check the disk or the download")
            return
        if raw is None:
            return
        number += 1
        ended = raw.endswith(b"\n")
        if number == 1:
            raw = raw.removeprefix(_BOM)
        raw = raw.strip(b" \t\r\n")
        if not raw:
            continue
        repeated: list[str] = []
        try:
            value = loads(raw, name=name, line=number, on_duplicate=repeated.append)
        except ContractError as error:
            if not ended:
                yield (
                    number,
                    Problem(
                        name,
                        number,
                        f"the last line is cut: {error.what}",
                        "the writer was stopped in the middle; run it again",
                    ),
                )
            else:
                yield number, error.problem(name, number)
            continue
        for key in repeated:
            yield (
                number,
                Problem(
                    name,
                    number,
                    f"the key {key!r} is there twice, the last one counts",
                    "make the writer write each key once",
                    fatal=False,
                ),
            )
        yield number, value

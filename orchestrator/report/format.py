"""Values as a report prints them: lossless where bits are the point, short where a person only needs the size."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
LONG = 24  # more characters than a number or a fingerprint has
VALUE_LENGTH = 400  # characters of one value; a longer one is cut in the middle, and says so

# A command in backquotes needs no guessing. A bare one ends before punctuation or one of these words.
_WORDS = (
    "and|to|or|then|if|for|from|shows?|says?|tells?|tries|compares?|prints?|gives?|lists?|goes|continues?|"
    "does|is|with a"
)
_ENDS = rf"\s*$|[,.:)]?\s+(?:{_WORDS})\b|[;,:)](?:\s|$)|(?<!\.)\.(?:\s|$)|\s\(|\s+#\s"
_BARE = rf"(?:[A-Z_]+=\S+ )*(?:foxrun|git|make|python) [^\n;`]+?(?={_ENDS})"
_COMMAND = re.compile(rf"`([^`\n]+)`|(?<![\w/.-])({_BARE})")


@dataclass(frozen=True)
class Piece:
    """A piece of a sentence: plain text, or a command that can be copied."""

    text: str
    command: bool


def value(item: Any) -> str:
    """One value, lossless: a float with all its digits, text as it is, objects as JSON in one line."""
    if item is None:
        return NOTHING
    if isinstance(item, str):
        return cut(item)
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        return _float(item)
    if isinstance(item, int):
        return cut(_digits(item))
    return cut(json.dumps(item, sort_keys=True, ensure_ascii=False, default=str))


def _float(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)


def _digits(number: int) -> str:
    # Python refuses to print integers of over 4,300 digits, and a metrics file may hold one.
    return str(number) if number.bit_length() < 10_000 else f"0x{number:x}"


def cut(text: str, length: int = VALUE_LENGTH) -> str:
    """The text, or its two ends and how many characters lie between them."""
    if len(text) <= length:
        return text
    head = length * 3 // 4
    tail = length // 8
    return f"{text[:head]} … {len(text) - head - tail:,} characters … {text[-tail:]}"


def dollars(amount: Any, *, signed: bool = False) -> str:
    """An amount in dollars and cents; ``signed`` puts a plus before a gain. A text stays what it is."""
    if amount is None or isinstance(amount, bool) or not isinstance(amount, int | float):
        return value(amount)
    if isinstance(amount, float) and not math.isfinite(amount):
        return _float(amount)
    if abs(amount) >= 1e15:
        size = f"${abs(amount):.3e}" if isinstance(amount, float) else f"${cut(_digits(abs(amount)), 40)}"
    elif 0 < abs(amount) < 0.005:  # a cent would hide that it is not zero
        size = f"${abs(amount):.3g}"
    else:
        size = f"${abs(amount):,.2f}"
    sign = MINUS if amount < 0 else "+" if signed and amount > 0 else ""
    return sign + size


def percent(amount: float | None) -> str:
    """A signed share with four significant digits; empty where it is not defined."""
    if amount is None or not math.isfinite(amount):
        return ""
    if amount == 0:
        return "0 %"
    digits = f"{abs(amount):,.2f}" if 0.01 <= abs(amount) < 1e9 else f"{abs(amount):.3g}"
    return f"{MINUS if amount < 0 else '+'}{digits} %"


def signed(number: int | float | None) -> str:
    """A difference with its sign, to four digits (both values stand beside it with all theirs); empty for none."""
    if number is None:
        return ""
    if isinstance(number, float) and not math.isfinite(number):
        return _float(number)
    text = f"{abs(number):.4g}" if isinstance(number, float) else cut(_digits(abs(number)), 40)
    return "0" if number == 0 else f"{MINUS if number < 0 else '+'}{text}"


def short(number: int) -> str:
    """A whole number that is read for its size: with separators up to a million, then three digits."""
    return f"{number:,}" if abs(number) < 1_000_000 else f"{number:.3g}" if number.bit_length() < 1000 else "huge"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 leaf``, ``1,024 leaves``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def sentence_case(text: str) -> str:
    """A message with a capital first letter, unless its first word is a name (``leg-a``, ``bits.u64``)."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,;:]", text) else text


def common(a: str, b: str) -> tuple[str, str, str, str]:
    """Two texts as what they share at the start, each one's own, and, of long ones, what they share at the end.

    Equal texts share all at the start. Numbers are short, and digits that agree at their end mean nothing.
    """
    shared = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        shared += 1
    rest_a, rest_b = a[shared:], b[shared:]
    end = 0
    if min(len(rest_a), len(rest_b)) > LONG:
        for left, right in zip(reversed(rest_a), reversed(rest_b), strict=False):
            if left != right:
                break
            end += 1
    cut_a, cut_b = len(rest_a) - end, len(rest_b) - end
    return a[:shared], rest_a[:cut_a], rest_b[:cut_b], rest_a[cut_a:]


def pieces(sentence: str) -> list[Piece]:
    """A sentence split at the commands in it, so that each can be copied on its own."""
    out: list[Piece] = []
    end = 0
    for found in _COMMAND.finditer(sentence):
        if found.start() > end:
            out.append(Piece(sentence[end : found.start()], False))
        out.append(Piece(found.group(1) or found.group(2), True))
        end = found.end()
    if end < len(sentence):
        out.append(Piece(sentence[end:], False))
    return out

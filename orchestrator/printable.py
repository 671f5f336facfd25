"""Text of others made fit for a terminal: it can move no cursor and make up no line; addresses without passwords."""

from __future__ import annotations

import re

# C0 but tab, DEL and C1 (escape sequences), line separators, what turns the direction of text, half pairs.
_UNFIT = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """One line, with ``\\x1b`` and its like for whatever a terminal would obey instead of show."""
    return _UNFIT.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """The same, with line ends left as they are."""
    return "\n".join(printable(line) for line in text.split("\n"))


def without_password(text: str) -> str:
    """The text with ``***`` for who is named before the host of each address in it."""
    return re.sub(r"(?<=://)[^/@\s]+(?=@)", "***", text)


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]

"""Times and durations, written as Argo writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)")
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def now() -> str:
    """Return the present time as RFC 3339 in UTC, with a fixed six-digit fraction so that text order is time order."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def timestamp(text: str) -> float:
    """Return the seconds since the epoch of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()


def duration_s(value: object) -> float:
    """Return the seconds of an Argo duration: `90`, `"90"`, `"90s"`, `"1h30m"`, `"1d"`. Raises ValueError."""
    text = str(value).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    position, total = 0, 0.0
    for part in _DURATION_PART.finditer(text):
        if part.start() != position:
            break
        total += float(part[1]) * _UNIT_S[part[2]]
        position = part.end()
    if not text or position != len(text):
        raise ValueError(f"{value!r} is not a duration such as 90, 90s or 1h30m")
    return total


def text_of(value: object) -> str:
    """Return a parameter's value as the text that Argo makes of it: YAML's numbers and booleans become strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)

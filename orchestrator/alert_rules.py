"""Which verdict of which branch is told to whom, and when: the setting `alert_rules`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

# As in compare.verdict, which settings know nothing of (a test holds both against each other).
GOOD = frozenset({"identical", "within_tolerance", "succeeded"})
BAD = frozenset({"drift", "gate_failed", "job_failed", "infrastructure", "incomparable", "incomplete"})
_SHORT = {"bad": BAD, "good": GOOD, "all": GOOD | BAD}
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_QUIET = re.compile(r"(?:(?P<days>[a-z]{3}(?:[-,][a-z]{3})*)\s+)?(?:(?P<hours>\d\d:\d\d-\d\d:\d\d)\s+)?(?P<zone>\S+)")
_LONGEST = timedelta(days=14)  # quiet hours that never end are no quiet hours


@dataclass(frozen=True, kw_only=True)
class Quiet:
    """Hours in which nobody is to be woken. ``days``: 0 is Monday, on which they begin; ``end`` may lie a day later."""

    days: frozenset[int]
    begin: time
    end: time
    zone: str

    def until(self, moment: datetime) -> datetime | None:
        """When the quiet hours around ``moment`` end; None outside of them."""
        zone = ZoneInfo(self.zone)
        today = moment.astimezone(zone).date()
        for day in (today - timedelta(days=1), today):
            begin, end = self._on(day, zone)
            if day.weekday() in self.days and begin <= moment < end:
                return end
        return None

    def _on(self, day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
        last = day + timedelta(days=1) if self.end <= self.begin else day
        # Compared in UTC: between two times of one zone Python would ignore a change of the clocks.
        return (
            datetime.combine(day, self.begin, zone).astimezone(UTC),
            datetime.combine(last, self.end, zone).astimezone(UTC),
        )


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Who hears of what. Patterns are as a shell's, ``*`` crosses slashes; no channels: all of them."""

    verdicts: frozenset[str] = BAD
    branches: tuple[str, ...] = ("*",)
    kinds: tuple[str, ...] = ("*",)
    channels: tuple[str, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    repeat: bool = False
    mended: bool = True

    def covers(self, branch: str, kind: str) -> bool:
        """Whether it speaks of this branch and kind of workflow."""
        return any(fnmatchcase(branch, p) for p in self.branches) and any(fnmatchcase(kind, p) for p in self.kinds)

    def due(self, moment: datetime) -> datetime:
        """``moment``, or when the quiet hours around it are over."""
        due = moment
        while (later := max((end for q in self.quiet if (end := q.until(due))), default=None)) is not None:
            due = later
            if due - moment > _LONGEST:
                break
        return due


def rule_texts(value: Any) -> tuple[str, ...]:
    """The setting `alert_rules`, checked: JSON of each rule. It is a list, or the text of one in YAML or JSON.

    Raises ValueError that names the rule.
    """
    if isinstance(value, str):
        from orchestrator import yaml_input

        try:
            value = yaml_input.load(value)
        except yaml_input.NotYaml as error:
            raise ValueError(f"it is no YAML: {error}") from None
    if not isinstance(value, list | tuple):
        raise ValueError("rules are a list of objects; docs/alerts.md shows some")
    for number, item in enumerate(value, 1):
        try:
            _rule(item)
        except ValueError as error:
            raise ValueError(f"rule {number}: {error}") from None
    return tuple(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in value)


def parse_rules(texts: Sequence[str]) -> tuple[Rule, ...]:
    """The rules of their texts; without any, the one that tells all channels of everything bad."""
    return tuple(_rule(json.loads(text)) for text in texts) or (Rule(),)


def _rule(item: Any) -> Rule:
    known = tuple(Rule.__dataclass_fields__)
    if not isinstance(item, Mapping):
        raise ValueError(f"it is an object of {', '.join(known)}")
    if strange := sorted(set(map(str, item)) - set(known)):
        raise ValueError(f"{strange[0]!r} is none of {', '.join(known)}")
    made: dict[str, Any] = {}
    for name in ("branches", "kinds", "channels"):
        if name in item:
            made[name] = _texts(name, item[name])
    if "verdicts" in item:
        made["verdicts"] = frozenset(_verdicts(_texts("verdicts", item["verdicts"])))
    if "quiet" in item:
        made["quiet"] = tuple(map(parse_quiet, _texts("quiet", item["quiet"])))
    for name in ("repeat", "mended"):
        if name in item:
            if not isinstance(item[name], bool):
                raise ValueError(f"{name} is true or false")
            made[name] = item[name]
    return Rule(**made)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(text, str) and text for text in items):
        raise ValueError(f"{name} is a text or a list of texts")
    return tuple(items)


def _verdicts(words: Sequence[str]) -> Iterable[str]:
    for word in words:
        if word not in _SHORT and word not in GOOD | BAD:
            raise ValueError(
                f"{word!r} is no verdict; they are {', '.join(sorted(GOOD | BAD))}, and bad, good, all for several"
            )
        yield from _SHORT.get(word, {word})


def parse_quiet(text: str) -> Quiet:
    """``22:00-07:00 Europe/Berlin``, ``sat,sun UTC`` or ``mon-fri 20:00-08:00 America/New_York``. Raises ValueError."""
    match = _QUIET.fullmatch(text.strip())
    if match is None or not (match["days"] or match["hours"]):
        raise ValueError(f"quiet hours are like '22:00-07:00 Europe/Berlin' or 'sat,sun UTC', not {text!r}")
    begin, end = (match["hours"] or "00:00-24:00").split("-")
    try:
        ZoneInfo(match["zone"])
        first, last = time.fromisoformat(begin), time.fromisoformat("00:00" if end == "24:00" else end)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{text!r}: no such time, or no such time zone (Europe/Berlin, UTC, ...)") from None
    if first == last and match["hours"] and end != "24:00":
        raise ValueError(f"{text!r} begins when it ends; a whole day is 00:00-24:00")
    return Quiet(days=_days(match["days"] or "mon-sun"), begin=first, end=last, zone=match["zone"])


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        ends = part.split("-")
        if len(ends) > 2 or any(day not in _DAYS for day in ends):
            raise ValueError(f"{part!r} is no day; they are {', '.join(_DAYS)}, and ranges such as mon-fri")
        first, last = _DAYS.index(ends[0]), _DAYS.index(ends[-1])
        found.update((first + n) % 7 for n in range((last - first) % 7 + 1))
    return frozenset(found)


def named(word: str) -> tuple[str, str]:
    """(name, URL) of one channel as the setting `alerts` has it; the name is empty where none was given."""
    match = re.fullmatch(r"([A-Za-z0-9][\w.-]*)=([A-Za-z][\w.+-]*://.*)", word.strip(), re.DOTALL)
    return (match[1], match[2]) if match else ("", word.strip())


def channels_of(words: Sequence[str]) -> dict[str, str]:
    """Name -> URL of the setting `alerts`: ``NAME=URL``, or a URL, which is named by its scheme (slack, slack-2)."""
    found: dict[str, str] = {}
    for word in words:
        name, url = named(word)
        if not url or (not name and url in found.values()):
            continue
        if not name:
            scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,31}(?=://)", url)
            base = scheme[0].lower() if scheme else "channel"
            names = [base, *(f"{base}-{n}" for n in range(2, len(words) + 2))]
            name = next(n for n in names if n not in found)
        found[name] = url
    return found

"""Tolerances that a user gives: bounds by key pattern, from YAML or JSON, and `--rtol` for checksums.

A difference is inside when it meets any one bound that its rule gives, as in math.isclose.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.compare.ulp import ulp_distance
from orchestrator.compare.values import canonical, is_number
from orchestrator.errors import UsageError

BOUNDS = ("abs", "rel", "ulp")
# Mode 0 promises nothing; its outcome should tell the same story: a dollar, or a thousandth of the larger.
MODE_0_KEY = "total_pnl_usd"
MODE_0_ABS_USD = 1.0
MODE_0_REL = 0.001

_EXAMPLE = 'write for example {"*_grad": {"rel": 1e-5}, "total_pnl_usd": {"abs": 1.0}}'


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The bounds for keys that match a pattern (fnmatch, case matters). None: this bound is not given."""

    pattern: str
    abs: float | None = None
    rel: float | None = None
    ulp: int | None = None

    def inside(self, a: float, b: float) -> bool:
        """Whether the difference of two numbers meets one of the bounds. NaN is inside only with NaN."""
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if a == b:
            return True
        if math.isinf(a) or math.isinf(b):
            return False
        difference = abs(a - b)
        if self.abs is not None and difference <= self.abs:
            return True
        if self.rel is not None and difference <= self.rel * max(abs(a), abs(b)):
            return True
        distance = ulp_distance(float(a), float(b)) if self.ulp is not None else None
        return distance is not None and self.ulp is not None and distance <= self.ulp


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Rules in order: the first whose pattern matches decides. `rtol` is for checksums that no rule matches."""

    rules: tuple[Rule, ...] = ()
    rtol: float | None = None

    def __bool__(self) -> bool:
        return bool(self.rules) or self.rtol is not None

    def inside(self, names: tuple[str, ...], a: Any, b: Any, *, checksum: bool = False) -> bool:
        """Whether two values known under these names (short, and full path) may differ as they do.

        Only numbers of the same type can: a changed type, a text or a missing key is never forgiven.
        """
        a, b = canonical(a), canonical(b)
        if not (is_number(a) and is_number(b)) or type(a) is not type(b):
            return False
        rule = _first_match(self.rules, names)
        if rule is None and checksum and self.rtol is not None:
            rule = Rule(pattern="*", rel=self.rtol)
        return rule is not None and _safe_inside(rule, a, b)


@functools.lru_cache(maxsize=1 << 14)
def _first_match(rules: tuple[Rule, ...], names: tuple[str, ...]) -> Rule | None:
    """Kept, since the same leaves come back in every row."""
    for rule in rules:
        if any(fnmatch.fnmatchcase(name, rule.pattern) for name in names):
            return rule
    return None


def _safe_inside(rule: Rule, a: Any, b: Any) -> bool:
    try:
        return rule.inside(a, b)
    except OverflowError:  # integers beyond float64
        return bool(a == b)


def parse_tolerance(text: str, label: str) -> tuple[Rule, ...]:
    """The rules of a tolerance file (YAML or JSON). Raises UsageError naming file, key and what to write."""
    value = _load(text, label)
    if not isinstance(value, Mapping) or not value:
        raise UsageError(f"{label}: a tolerance is a mapping of key patterns to bounds", remedy=_EXAMPLE)
    return tuple(_rule(str(pattern), bounds, label) for pattern, bounds in value.items())


def checked_rtol(value: float) -> float:
    """A relative tolerance for checksums. Raises UsageError unless it is finite and not negative."""
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"--rtol {value}: must be a finite number, 0 or more", remedy="for example --rtol 1e-5")
    return value


def mode_0_inside(a: Any, b: Any) -> bool:
    """Mode 0's default: total_pnl_usd differs by less than a dollar and by less than 0.1 % of the larger."""
    a, b = canonical(a), canonical(b)
    if not (is_number(a) and is_number(b)):
        return False
    x, y = float(a), float(b)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    if x == y:
        return True
    difference = abs(x - y)
    return difference < MODE_0_ABS_USD and difference < MODE_0_REL * max(abs(x), abs(y))


def _load(text: str, label: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    from orchestrator import yaml_input

    try:
        return yaml_input.load(text)
    except yaml_input.NotYaml as error:
        where = f", line {error.line}" if error.line is not None else ""
        raise UsageError(f"{label}{where}: neither YAML nor JSON", remedy=_EXAMPLE) from error


def _rule(pattern: str, bounds: Any, label: str) -> Rule:
    if not isinstance(bounds, Mapping) or not bounds:
        raise UsageError(f"{label}: {pattern!r} needs bounds out of {', '.join(BOUNDS)}", remedy=_EXAMPLE)
    unknown = [str(name) for name in bounds if name not in BOUNDS]
    if unknown:
        raise UsageError(f"{label}: {pattern!r} has unknown bound {unknown[0]!r}; the bounds are {', '.join(BOUNDS)}")
    fields: dict[str, Any] = {name: _bound(value, f"{label}: {pattern!r}: {name}") for name, value in bounds.items()}
    if "ulp" in fields:
        if fields["ulp"] != int(fields["ulp"]):
            raise UsageError(f"{label}: {pattern!r}: ulp must be a whole number, found {bounds['ulp']!r}")
        fields["ulp"] = int(fields["ulp"])
    return Rule(pattern=pattern, **fields)


def _bound(value: Any, where: str) -> float:
    if isinstance(value, str):  # YAML 1.1 reads 1e-5 as a text
        try:
            value = float(value)
        except ValueError:
            value = None
    if not is_number(value) or not math.isfinite(value) or value < 0:
        raise UsageError(f"{where}: must be a finite number, 0 or more", remedy=_EXAMPLE)
    return float(value)

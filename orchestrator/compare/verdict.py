"""The verdict: what a comparison found, in the one shape that files, reports, alerts and exit codes are made from.

`verdict.json` is `as_dict(verdict)`; `from_dict` reads it back. Codes and their precedence are SPEC section 3's table.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

IDENTICAL = "identical"
WITHIN_TOLERANCE = "within_tolerance"
SUCCEEDED = "succeeded"  # a training ran to its end, and nothing was compared
DRIFT = "drift"
GATE_FAILED = "gate_failed"
JOB_FAILED = "job_failed"
INFRASTRUCTURE = "infrastructure"
INCOMPARABLE = "incomparable"
INCOMPLETE = "incomplete"

EXIT_CODES: Mapping[str, int] = {
    IDENTICAL: 0,
    WITHIN_TOLERANCE: 0,
    SUCCEEDED: 0,
    DRIFT: 3,
    GATE_FAILED: 4,
    JOB_FAILED: 5,
    INFRASTRUCTURE: 6,
    INCOMPARABLE: 7,
    INCOMPLETE: 7,
}

# The worst first. A failed job explains a missing file, so 5 stands before 7; a missing file explains a difference.
PRECEDENCE: tuple[int, ...] = (6, 5, 4, 7, 3, 0)

# `differences` is a sample for people; `differences_total` counts them all.
DIFFERENCES_KEPT = 100


# Of verdict.json, beside the verdict's own keys: the node of a cluster that wrote it.
NODE = "node"


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One side of the comparison."""

    label: str
    run_id: str = ""
    commit: str = ""
    tree: str = ""
    seed: int | None = None
    mode: int | None = None
    leg: str = ""
    rows: int = 0
    exit_reason: str = ""
    manifest: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlantedFlip:
    """One bit flipped in a copy of run A, in memory: a comparison that misses it proves nothing."""

    row: int
    leaf: str
    found: bool


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How much agreed. `values` counts fingerprints taken in both runs (a stored 0 is none), `metrics` JSON values."""

    rows: int = 0
    leaves: int = 0
    values: int = 0
    metrics: int = 0
    never_changed: list[str] = field(default_factory=list)
    seed_independent: list[str] = field(default_factory=list)
    planted_flip: PlantedFlip | None = None


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where the runs part first; `line` is the stable FIRST_DIVERGENCE line, the rest its parts as printed."""

    step: int | str
    row: int
    leaf: str
    run_a: str
    run_b: str
    delta: str
    line: str


@dataclass(frozen=True, kw_only=True)
class PartedLeaf:
    """A leaf (or metric) that differs at the first parted step. Fingerprints are 16 hex digits, checksums float64."""

    name: str
    component: str = ""
    kind: str = ""
    checksum_a: float | None = None
    checksum_b: float | None = None
    fingerprint_a: str | None = None
    fingerprint_b: str | None = None
    delta: float | None = None
    ulp: int | None = None


@dataclass(frozen=True, kw_only=True)
class GrowthPoint:
    """The difference at one step: how many leaves part, and the largest checksum difference among them."""

    step: int | str
    leaves_parted: int
    max_abs: float = 0.0
    max_rel: float = 0.0


@dataclass(frozen=True, kw_only=True)
class OutcomeRow:
    """One key of eval_summary.json. `delta` is b - a; `percent` is delta in per cent of |a|; None where undefined."""

    key: str
    a: Any = None
    b: Any = None
    delta: float | None = None
    percent: float | None = None


@dataclass(frozen=True, kw_only=True)
class FieldDifference:
    """A manifest field that differs; `matters` when runs that differ in it cannot be compared."""

    path: str
    a: Any = None
    b: Any = None
    matters: bool = False


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference in a compared file. `kind` says of what sort; `a` and `b` are texts as printed."""

    file: str
    path: str
    kind: str
    a: str = ""
    b: str = ""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a workflow that failed."""

    name: str
    phase: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    finished: str = ""


@dataclass(frozen=True, kw_only=True)
class TieBreak:
    """What a third leg, C, says of a pair that drifted. `odd` is a, b, all, none (tolerances) or unknown.

    `with_a` and `with_b` are the verdicts on A and C, and on B and C; `first_*` their FIRST_DIVERGENCE lines.
    """

    odd: str
    message: str
    with_a: str = ""
    with_b: str = ""
    first_with_a: str = ""
    first_with_b: str = ""
    run: RunSummary = field(default_factory=lambda: RunSummary(label="C", leg="c"))


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """One seed of a sweep: its pair's verdict, and whether another seed than the first changes anything at all."""

    seed: int
    verdict: str
    step: str = ""
    leaf: str = ""
    pnl_difference: float | None = None
    message: str = ""
    unused: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a comparison, a gate or a whole workflow came to."""

    verdict: str
    exit_code: int
    message: str
    next: str = ""
    subject: str = "pair"
    runs: list[RunSummary] = field(default_factory=list)
    agreed: Agreement | None = None
    first_divergence: Divergence | None = None
    parted: list[PartedLeaf] = field(default_factory=list)
    growth: list[GrowthPoint] = field(default_factory=list)
    outcome: list[OutcomeRow] = field(default_factory=list)
    manifest_differences: list[FieldDifference] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    differences_total: int = 0
    tie_break: TieBreak | None = None
    parts: list[Part] = field(default_factory=list)
    seeds: list[SeedRow] = field(default_factory=list)
    workflow: str = ""
    notes: list[str] = field(default_factory=list)


# A comparison knows no request: whoever knows the workflow puts its parameters in.
SAME_PARAMETERS = "(with the same -p)"
# Nor does a part of a workflow know its name: whoever judges the workflow puts it in.
WORKFLOW = "NAME"


def command(*words: str) -> str:
    """A command as ``next`` holds it: quoted for the shell, in backquotes, so that it can be told from the sentence."""
    text = shlex.join(words)
    return text if "`" in text or "\n" in text else f"`{text}`"


def make(verdict: str, message: str, **fields: Any) -> Verdict:
    """A Verdict with the exit code of its name. Raises ValueError for a name that is not in the table."""
    if verdict not in EXIT_CODES:
        raise ValueError(f"{verdict!r} is not a verdict; the verdicts are {', '.join(EXIT_CODES)}")
    return Verdict(verdict=verdict, exit_code=EXIT_CODES[verdict], message=message, **fields)


def precedence(codes: Iterable[int]) -> int:
    """The exit code of several parts together: the first of 6, 5, 4, 7, 3, 0 that occurs. An unknown code counts as 6.

    No part at all is 0 only because nothing was asked; callers that expect parts must check that there are some.
    """
    seen = {code if code in PRECEDENCE else 6 for code in codes}
    return next((code for code in PRECEDENCE if code in seen), 0)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that a group returns: the first of the worst code. Raises ValueError when there is none."""
    known = list(verdicts)
    if not known:
        raise ValueError("no verdict to choose from")
    code = precedence(verdict.exit_code for verdict in known)
    return next((verdict for verdict in known if verdict.exit_code == code), known[0])


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """The object that verdict.json holds: plain dicts, lists, strings and numbers."""
    return dataclasses.asdict(verdict)


T = TypeVar("T")
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOATS = {"checksum_a", "checksum_b", "delta", "max_abs", "max_rel", "percent", "pnl_difference"}


def _printed(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _build(kind: type[T], value: object) -> T:
    """A dataclass from a dict of its fields; fields that this version does not know are left out."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{kind.__name__}: expected an object, found {type(value).__name__}")
    known = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    fields = {name: item for name, item in value.items() if name in known}
    if kind in (Divergence, Difference):  # texts as printed, which readers of the contract's JSON take for floats
        fields = {name: _printed(item) for name, item in fields.items()}
    else:
        for name in _FLOATS & fields.keys():
            if isinstance(fields[name], str):
                fields[name] = _NON_FINITE.get(fields[name])
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from error


def _build_list(kind: type[T], value: object) -> list[T]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of {kind.__name__}, found {type(value).__name__}")
    return [_build(kind, item) for item in value]


_LISTS: Mapping[str, type] = {
    "runs": RunSummary,
    "parted": PartedLeaf,
    "growth": GrowthPoint,
    "outcome": OutcomeRow,
    "manifest_differences": FieldDifference,
    "differences": Difference,
    "parts": Part,
    "seeds": SeedRow,
}


def _with_run(value: object) -> object:
    if not isinstance(value, Mapping) or "run" not in value:
        return value
    return {**value, "run": _build(RunSummary, value["run"])}


def from_dict(value: object) -> Verdict:
    """The Verdict that `as_dict` wrote, perhaps by another version. Raises ValueError saying what is wrong."""
    if not isinstance(value, Mapping):
        raise ValueError(f"a verdict is an object, found {type(value).__name__}")
    for name in ("verdict", "message"):
        if not isinstance(value.get(name), str):
            raise ValueError(f"a verdict needs the text {name!r}")
    if value["verdict"] not in EXIT_CODES:
        raise ValueError(f"{value['verdict']!r} is not a verdict; the verdicts are {', '.join(EXIT_CODES)}")
    fields = dict(value)
    fields["exit_code"] = EXIT_CODES[value["verdict"]]
    for name, kind in _LISTS.items():
        if name in fields:
            fields[name] = _build_list(kind, fields[name])
    if fields.get("agreed") is not None:
        agreed = _build(Agreement, fields["agreed"])
        if agreed.planted_flip is not None:
            agreed = dataclasses.replace(agreed, planted_flip=_build(PlantedFlip, agreed.planted_flip))
        fields["agreed"] = agreed
    if fields.get("first_divergence") is not None:
        fields["first_divergence"] = _build(Divergence, fields["first_divergence"])
    if fields.get("tie_break") is not None:
        fields["tie_break"] = _build(TieBreak, _with_run(fields["tie_break"]))
    return _build(Verdict, fields)


def lines(verdict: Verdict) -> list[str]:
    """The plain text that a person sees: verdict first, then what supports it, then what to do next."""
    from orchestrator.compare.text import lines_of

    return lines_of(verdict)

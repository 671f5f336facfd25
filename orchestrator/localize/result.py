"""What a localisation came to, in the one shape that text, JSON, report page and exit code are made from. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from orchestrator.compare.verdict import GrowthPoint, Verdict

# How the origin shows.
OUTPUTS_DIFFER = "outputs differ"
# What a draw says of itself that got one state of its generator and gave other values.
OTHER_CHOICE = "its generator agrees before and after it: what it draws from differs"
DRAWN_MEANWHILE = "its generator agrees before it and not after it: somebody else draws meanwhile, or its range differs"
CHANGED_BEHIND = "changed behind"
REORDERED = "reordered"
CONTROL_FLOW = "control flow"
SEED = "seed"
HOST_VALUE = "host value"

ORIGIN, INHERITED = "origin", "inherited"
VERIFIED, NOT_ENOUGH, HIDDEN, NOT_TRIED = "verified", "not enough", "hidden", "not tried"

EXIT_CLEAN, EXIT_FOUND = 0, 3


# Kinds of pairs: what their twins do.
DELAYS, PACE = "delays", "pace"
KINDS = {
    "hostile": "differ in all that must not matter",
    "threads": "differ also in the number of threads",
    "load": "run beside other load",
    DELAYS: "differ in nothing but in which of their threads, or streams of a device, wait",
    PACE: "differ in nothing but in how long things seem to take",
}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The first operation whose inputs agree and whose outputs do not.

    ``source`` is the line itself, where it can be read; ``events`` are its indices in both twins' streams, ``process``
    whose stream it is, ``leads`` what led to it from outside, ``values`` what came back in each twin.
    """

    name: str
    kind: str
    where: str = ""
    module: str = ""
    phase: str = ""
    how: str = OUTPUTS_DIFFER
    source: str = ""
    shapes: str = ""
    step: int | None = None
    process: str = "0"
    events: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    detail: str = ""
    leads: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Parted:
    """A leaf that differs in the first parted row, origin or inherited, and why."""

    leaf: str
    kind: str
    component: str
    role: str
    why: str
    a: float | None = None
    b: float | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One pair of twins. ``step`` is None and ``leaf`` empty where they agreed."""

    number: int
    pair: str
    step: int | None = None
    leaf: str = ""
    operation: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The operation alone on its dumped inputs: in how many of ``runs`` its outputs were not those of the first."""

    runs: int
    processes: int
    parted: int
    max_ulp: int | None = None
    max_abs: float | None = None
    varied: dict[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A candidate. ``confidence`` is one of certain, likely, possible; docs/causes.md says by which rule."""

    name: str
    confidence: str
    title: str = ""
    evidence: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What to do. ``outcome``: verified, not enough, hidden, not tried; ``runs`` pairs of twins decided it."""

    name: str
    text: str
    outcome: str = NOT_TRIED
    runs: int = 0
    next_origin: str = ""
    note: str = ""
    cause: str = ""


@dataclass(frozen=True, kw_only=True)
class Localization:
    """What was found.

    ``runs`` counts pairs of twins; ``rules_out`` is the rate p of parting that these would have shown with 95 % (of
    clean results only; 1.0 where nothing was ruled out).
    """

    found: bool
    message: str = ""
    subject: str = ""
    step: int | None = None
    leaf: str = ""
    component: str = ""
    operation: Operation | None = None
    parted: list[Parted] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    replay: Replay | None = None
    causes: list[Cause] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    runs: int = 0
    rules_out: float = 1.0
    not_looked_at: list[str] = field(default_factory=list)
    growth: list[GrowthPoint] = field(default_factory=list)
    dumps: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    further: list[Operation] = field(default_factory=list)  # origins seen in other trials, or behind the first one
    verdict: Verdict | None = None
    seconds: float = 0.0
    next: str = ""

    @property
    def exit_code(self) -> int:
        """3 when a difference was found, else 0."""
        return EXIT_FOUND if self.found else EXIT_CLEAN


def as_dict(result: Localization) -> dict[str, Any]:
    """The object that ``-o json`` prints and localization.json holds."""
    return dataclasses.asdict(result)


def rules_out(pairs: int, power: float = 0.95) -> float:
    """The smallest rate p of which ``pairs`` pairs, all agreeing, would have parted at least once with ``power``.

    From (1 - p)^pairs = 1 - power. No pair rules out nothing: 1.0.
    """
    return 1.0 if pairs < 1 else 1.0 - (1.0 - power) ** (1.0 / pairs)


def pairs_for(rate: float, power: float = 0.95, most: int = 12) -> int:
    """How many agreeing pairs it takes to tell a cure from luck, for a fault that parts a pair at ``rate``."""
    if rate >= 0.95:
        return 2
    pairs = 1
    while pairs < most and (1.0 - rate) ** pairs > 1.0 - power:
        pairs += 1
    return pairs

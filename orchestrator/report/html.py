"""A verdict as one HTML file: no script, nothing remote, no image; the same verdict gives the same bytes.

The page is report.html.j2 (order and markup) with style.css.j2; what it shows is put together here. Everything that
comes from a run is text and is escaped by the template engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jinja2
from markupsafe import Markup

from orchestrator.compare.verdict import (
    DRIFT,
    GATE_FAILED,
    IDENTICAL,
    INCOMPARABLE,
    INCOMPLETE,
    INFRASTRUCTURE,
    JOB_FAILED,
    SUCCEEDED,
    WITHIN_TOLERANCE,
    GrowthPoint,
    OutcomeRow,
    PartedLeaf,
    RunSummary,
    Verdict,
)
from orchestrator.report import format as fmt
from orchestrator.report import manifests, svg

WORDS = {
    IDENTICAL: "Identical",
    WITHIN_TOLERANCE: "Within tolerance",
    SUCCEEDED: "Succeeded",
    DRIFT: "Drift",
    GATE_FAILED: "Gate failed",
    JOB_FAILED: "Job failed",
    INFRASTRUCTURE: "Infrastructure failed",
    INCOMPARABLE: "Incomparable",
    INCOMPLETE: "Incomplete",
}
SUBJECTS = {
    "pair": "Regression pair",
    "gate": "Gate: twin run",
    "metrics": "Metric files",
    "train": "Training",
    "golden": "Golden",
}
LEAVES_OPEN = 12  # the first leaves are the ones that matter: all after them inherit
NAMES_OPEN = 12
FIGURES = 16
LABEL_LENGTH = 160
PNL = "total_pnl_usd"


# Control characters, halves of surrogate pairs, and what reverses the direction of text: a name could otherwise make
# the file unwritable, or the page say something else than it holds.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Pair:
    """Two values under one label: their shared start ``same``, what is each one's own, their shared ``end``."""

    label: str
    same: str
    a: str
    b: str
    end: str = ""
    delta: str = ""
    note: str = ""
    kind: str = ""

    @property
    def equal(self) -> bool:
        """Whether both values print alike."""
        return not self.a and not self.b


def render(verdict: Verdict) -> str:
    """The whole page for one verdict. Pure: no clock, no file of the run, no network."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _template().render(page=_page(verdict), v=verdict))


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The templates of this package, with everything that is put into them escaped."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("orchestrator.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["value"] = fmt.value
    made.filters["breaks"] = _breaks
    made.filters["pieces"] = fmt.pieces
    return made


def _template() -> jinja2.Template:
    return environment().get_template("report.html.j2")


def _breaks(name: str) -> Markup:
    """A name that may be broken after the characters that part its words; what is copied holds nothing more."""
    return Markup("<wbr>").join(re.findall(r"[^_./]*[_./]+|[^_./]+", name))


def _page(verdict: Verdict) -> dict[str, Any]:
    a, b = _sides(verdict)
    leaves = [_leaf(leaf) for leaf in verdict.parted]
    return {
        "word": WORDS.get(verdict.verdict, verdict.verdict),
        "subject": SUBJECTS.get(verdict.subject, verdict.subject),
        "facts": [*([("workflow", verdict.workflow)] if verdict.workflow else []), *_shared_facts(verdict.runs)],
        "tie_break": _tie_break(verdict),
        "pnl": _pnl(verdict.outcome),
        "component": _component(verdict),
        "divergence": _divergence(verdict),
        "message": fmt.sentence_case(verdict.message),
        "short_leaf": fmt.cut(verdict.first_divergence.leaf, 60) if verdict.first_divergence else "",
        "leaves": leaves[:LEAVES_OPEN],
        "more_leaves": leaves[LEAVES_OPEN:],
        "parted": _parted_in_words(verdict),
        "leaf_noun": "metric" if verdict.subject == "metrics" else "leaf",
        "leaf_nouns": "metrics" if verdict.subject == "metrics" else "leaves",
        "charts": svg.growth_charts(verdict.growth),
        "figures": _figures(verdict.growth),
        "agreed": _agreed(verdict),
        "outcome": [_outcome(row) for row in verdict.outcome],
        "runs": _runs(a, b),
        "names": (a.label if a else "", b.label if b else ""),
        "field_differences": [
            _pair(d.path, fmt.value(d.a), fmt.value(d.b), kind="matters" if d.matters else "")
            for d in sorted(verdict.manifest_differences, key=lambda d: not d.matters)
        ],
        "manifests": manifests.side_by_side(
            a.manifest if a else {}, b.manifest if b else {}, verdict.manifest_differences, pair=b is not None
        ),
        "two": b is not None,
        "differences": [
            _pair(d.path, fmt.value(d.a), fmt.value(d.b), note=d.file, kind=d.kind) for d in verdict.differences
        ],
        "names_open": NAMES_OPEN,
    }


def _sides(verdict: Verdict) -> tuple[RunSummary | None, RunSummary | None]:
    runs = [*verdict.runs[:2], None, None]
    return runs[0], runs[1]


def _pair(label: str, a: str, b: str, **more: str) -> Pair:
    same, own_a, own_b, end = fmt.common(a, b)
    return Pair(fmt.cut(label, LABEL_LENGTH), same, own_a, own_b, end, **more)


def _shared_facts(runs: Sequence[RunSummary]) -> list[tuple[str, str]]:
    """What both runs were asked to be, where they agree: the line under the title."""
    if not runs:
        return []
    first = runs[0]
    facts: list[tuple[str, str, set[Any]]] = [
        ("commit", first.commit[:12], {run.commit for run in runs}),
        ("seed", fmt.value(first.seed), {run.seed for run in runs}),
        ("mode", fmt.value(first.mode), {run.mode for run in runs}),
    ]
    return [(name, text) for name, text, seen in facts if len(seen) == 1 and text and text != fmt.NOTHING]


def _component(verdict: Verdict) -> str:
    if verdict.first_divergence is None:
        return ""
    name = verdict.first_divergence.leaf
    return next((leaf.component for leaf in verdict.parted if leaf.name == name), "")


def _divergence(verdict: Verdict) -> Pair | None:
    first = verdict.first_divergence
    if first is None:
        return None
    return _pair(first.leaf, first.run_a, first.run_b, delta=first.delta)


def _leaf(leaf: PartedLeaf) -> Pair:
    """A parted leaf. Checksums where both exist and differ, else the fingerprints, as in the stable line."""
    about = " · ".join(text for text in (leaf.component, leaf.kind) if text)
    a, b = fmt.value(leaf.checksum_a), fmt.value(leaf.checksum_b)
    ulp = f"{fmt.short(leaf.ulp)} ulp" if leaf.ulp is not None else ""
    fingerprints = leaf.fingerprint_a is not None and leaf.fingerprint_b is not None
    if fingerprints and (leaf.checksum_a is None or leaf.checksum_b is None or a == b):
        # Digits that two hashes share are chance, so none are set apart.
        hashes = ("", leaf.fingerprint_a or "", leaf.fingerprint_b or "")
        return Pair(fmt.cut(leaf.name, LABEL_LENGTH), *hashes, delta="bits", note=about, kind=ulp)
    return _pair(leaf.name, a, b, delta=fmt.signed(leaf.delta), note=about, kind=ulp)


def _figures(points: Sequence[GrowthPoint]) -> list[GrowthPoint]:
    """The chart's figures as a table: at most FIGURES rows, closer together where the difference begins."""
    last = len(points) - 1
    if last < FIGURES:
        return list(points)
    picked = {round((last + 1) ** (i / (FIGURES - 1))) - 1 for i in range(FIGURES)}
    return [points[i] for i in sorted(picked)]


def _outcome(row: OutcomeRow) -> Pair:
    percent = fmt.percent(row.percent)
    kind = "pnl" if row.key == PNL and row.delta != 0 else ""
    money = row.key.endswith("_usd") and row.delta is not None
    delta = fmt.dollars(row.delta, signed=True) if money else fmt.signed(row.delta)
    return _pair(row.key, fmt.value(row.a), fmt.value(row.b), delta=delta, note=percent, kind=kind)


def _pnl(rows: Sequence[OutcomeRow]) -> dict[str, str] | None:
    """The effect on profit and loss; None when neither run has a figure."""
    row = next((row for row in rows if row.key == PNL), None)
    if row is None or (row.a is None and row.b is None):
        return None
    if row.delta is None:
        return {"delta": "no number", "about": "", "a": fmt.dollars(row.a), "b": fmt.dollars(row.b)}
    percent = fmt.percent(row.percent)
    a, b = fmt.dollars(row.a), fmt.dollars(row.b)
    if a == b and row.delta != 0:  # less than a cent apart: their digits say it
        a, b = fmt.value(row.a), fmt.value(row.b)
    return {
        "delta": fmt.dollars(row.delta, signed=True),
        "about": "no difference" if row.delta == 0 else f"{percent} of A" if percent else "",
        "a": a,
        "b": b,
    }


def _parted_in_words(verdict: Verdict) -> str:
    """``12 leaves and 1 metric``."""
    metrics = len([leaf for leaf in verdict.parted if verdict.subject == "metrics" or leaf.kind == "metric"])
    counts = [(len(verdict.parted) - metrics, "leaf", "leaves"), (metrics, "metric", "metrics")]
    return " and ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts if n)


def _agreed(verdict: Verdict) -> list[tuple[str, str]]:
    agreed = verdict.agreed
    if agreed is None:
        return []
    total = max((run.rows for run in verdict.runs), default=0)
    out = [
        ("rows that agree throughout", f"{agreed.rows:,} of {total:,}" if total >= agreed.rows else f"{agreed.rows:,}")
    ]
    if agreed.leaves:
        out.append(("leaves in each row", f"{agreed.leaves:,}"))
        if agreed.values or agreed.metrics or verdict.verdict != IDENTICAL:
            out.append(("fingerprints that agree", f"{agreed.values:,}"))
        else:  # nothing was read: equal hashes stand for equal files
            out.append(("fingerprints that agree", f"all {agreed.rows * agreed.leaves:,}, by their files' hashes"))
    if agreed.metrics:
        out.append(("metric values that agree", f"{agreed.metrics:,}"))
    return out


def _tie_break(verdict: Verdict) -> list[tuple[str, str, str]]:
    broken = verdict.tie_break
    if broken is None:
        return []
    sides = (("A and C", broken.with_a, broken.first_with_a), ("B and C", broken.with_b, broken.first_with_b))
    return [(name, WORDS.get(word, word), line) for name, word, line in sides]


def _runs(a: RunSummary | None, b: RunSummary | None) -> list[Pair]:
    if a is None:
        return []
    other = b or a
    rows = [
        ("run", a.label, other.label),
        ("leg", a.leg, other.leg),
        ("run id", a.run_id, other.run_id),
        ("commit", a.commit, other.commit),
        ("tree", a.tree, other.tree),
        ("seed", a.seed, other.seed),
        ("mode", a.mode, other.mode),
        ("rows", a.rows, other.rows),
        ("ended", a.exit_reason, other.exit_reason),
    ]
    shown = [(name, x, y) for name, x, y in rows if x not in ("", None) or y not in ("", None)]
    return [_pair(name, fmt.value(x) or fmt.NOTHING, fmt.value(y) or fmt.NOTHING) for name, x, y in shown]

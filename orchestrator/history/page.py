"""The history as one static page: verdicts over time per branch, a link to each report. No script, no remote load.

10,000 rows open at once because the browser lays out only those that are seen (CSS content-visibility).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import jinja2

from orchestrator.compare.text import dollars
from orchestrator.history.entries import Entry, newest_first
from orchestrator.report.html import UNPRINTABLE

# Rows that the browser lays out together, and cells of the strip above them.
GROUP = 100
STRIP = 400
_SCHEMES = ("https://", "http://", "s3://")


@dataclass(frozen=True)
class Branch:
    """One branch: its runs, newest first, in groups; the strip, oldest first; and how many of each verdict."""

    name: str
    latest: Entry
    groups: list[list[Entry]]
    strip: list[Entry]
    counts: list[tuple[str, int]]


def render(entries: Sequence[Entry], *, title: str = "") -> str:
    """The page. Branches come in order of their newest run."""
    ordered = newest_first(entries)
    by_branch: dict[str, list[Entry]] = {}
    for entry in ordered:
        by_branch.setdefault(entry.branch, []).append(entry)
    branches = []
    for name, runs in by_branch.items():
        branches.append(
            Branch(
                name=name or "(no branch)",
                latest=runs[0],
                groups=[runs[i : i + GROUP] for i in range(0, len(runs), GROUP)],
                strip=runs[:STRIP][::-1],
                counts=sorted(Counter(entry.verdict for entry in runs).items()),
            )
        )
    text = _template().render(branches=branches, total=len(ordered), title=title, group=GROUP)
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def link(report: str) -> str:
    """An address for ``href``, empty for what is none: a path becomes a file URL, a scheme of scripts nothing."""
    if report.startswith(_SCHEMES):
        return report
    return "file://" + quote(report) if report.startswith("/") and Path(report).suffix == ".html" else ""


def money(value: float | None) -> str:
    """A P&L difference, empty where there is none."""
    return "" if value is None or value == 0 else dollars(value)


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orchestrator.history", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["link"] = link
    environment.filters["money"] = money
    return environment.get_template("history.html.j2")

"""A localisation as one HTML file: no script, nothing remote, no image; the same result gives the same bytes.

The page is localization.html.j2 with the verdict page's style sheet; everything from a run is escaped by the template.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import jinja2

from foxrun.files import write_atomic
from orchestrator.localize import raw, text
from orchestrator.localize.causes import RULE
from orchestrator.localize.result import Localization
from orchestrator.report import dataflow, html, svg
from orchestrator.report import format as fmt

LEAVES_OPEN = 10


def render(result: Localization) -> str:
    """The whole page. Pure: no clock, no file, no network."""
    pnl = None
    if result.verdict is not None:
        pnl = next((row for row in result.verdict.outcome if row.key == html.PNL), None)
    growth = result.growth
    if result.verdict is not None and len(result.verdict.growth) > len(growth):
        growth = result.verdict.growth
    page = {
        "drawing": dataflow.drawing(result) if result.found else "",
        "charts": svg.growth_charts(growth),
        "pnl": "" if pnl is None or not pnl.delta else fmt.dollars(pnl.delta, signed=True),
        "first": next(iter(growth), None),
        "replay": text.replay_text(result.replay) if result.replay is not None else "",
        "remedies": [(remedy, *text.remedy_parts(remedy)) for remedy in result.remedies],
        "timeline": dataflow.timeline(result.step, growth) if result.found else "",
        "dumps": raw.lines(result.dumps),
        "size": f"{growth[0].max_abs:.3g}" if growth else "",
        "leaves": result.parted[:LEAVES_OPEN],
        "more_leaves": result.parted[LEAVES_OPEN:],
        "kinds": text.kinds_of(result.trials),
        "rule": RULE,
        "rules_out": f"{result.rules_out:.0%}",
    }
    return html.UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", _template().render(r=result, page=page))


def write(result: Localization, file: Path) -> None:
    """Write the page, all at once or not at all."""
    file.absolute().parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, render(result))


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    return html.environment().get_template("localization.html.j2")

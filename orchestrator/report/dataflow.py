"""Inline SVG: one step's dataflow, with the stage where the twins part first marked. The style sheet colours it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.compare.verdict import GrowthPoint
from orchestrator.localize.result import INHERITED, ORIGIN, Localization

STAGES = (
    ("generator", "generators"),
    ("data", "data"),
    ("state", "state read"),
    ("weights", "weights read"),
    ("forward", "forward"),
    ("loss", "loss"),
    ("backward", "gradients"),
    ("optimizer", "optimizer"),
)
_BY_KIND = {"weight": "weights", "moment": "state", "activation": "forward", "outcome": "loss", "gradient": "backward",
            "input": "data", "state": "state", "file": "optimizer"}  # fmt: skip
AGREES = "agrees"
TEXT = 22  # characters in a box
BOX, GAP, ROW, LEFT = 190, 20, 44, 4
WIDTH = 2 * BOX + GAP + 2 * LEFT
_PLACES = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3))


@dataclass(frozen=True)
class Stage:
    """One box: ``state`` is origin, inherited or agrees; ``about`` what parts there."""

    name: str
    title: str
    state: str
    about: str


def stages(result: Localization) -> list[Stage]:
    """The stages of the step, in dataflow order."""
    parted: dict[str, list[str]] = {}
    for leaf in result.parted:
        name = "generator" if leaf.component == "generator" else _BY_KIND.get(leaf.kind, "state")
        parted.setdefault(name, []).append(leaf.leaf)
    where = stage_of(result)
    out = []
    for name, title in STAGES:
        leaves = parted.get(name, [])
        state = ORIGIN if name == where else INHERITED if leaves else AGREES
        about = _named(leaves)
        if name == where and result.operation is not None:
            about = result.operation.name
        out.append(Stage(name, title, state, about or ("agrees" if state == AGREES else "")))
    return out


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _named(leaves: Sequence[str]) -> str:
    """The first leaf and how many more."""
    if len(leaves) < 2:
        return leaves[0] if leaves else ""
    more = f" +{len(leaves) - 1}"
    return _cut(leaves[0], TEXT - len(more)) + more


def timeline(step: int | None, growth: Sequence[GrowthPoint]) -> Markup:
    """The run as one bar: steps that agree, the step where the twins part, and what was seen after it."""
    if step is None:
        return Markup("")
    after = [point.step for point in growth if isinstance(point.step, int)]
    last = max([step, *after]) + 1
    width = 600
    at = max(8.0, min(width - 8.0, width * step / last)) if step else 4.0
    side = "start" if at < width / 2 else "end"
    said = f"Steps 0 to {step - 1} agree" if step > 1 else "Step 0 agrees" if step else "No step agrees"
    return Markup(
        '<svg class="chart timeline" viewBox="0 0 {w} 62" role="img" aria-labelledby="line-title line-text">'
        '<title id="line-title">The run</title><desc id="line-text">{said}; the twins part at step {step}.</desc>'
        '<rect class="agrees" x="1" y="24" width="{a}" height="16" rx="3"/>'
        '<rect class="parted" x="{at}" y="24" width="{rest}" height="16" rx="3"/>'
        '<path class="mark" d="M{at} 18V46"/><text class="first" x="{at}" y="13" text-anchor="{side}">parts at step '
        '{step}</text><text x="1" y="58">step 0</text><text x="{w}" y="58" text-anchor="end">{end}</text></svg>'
    ).format(
        w=width, a=max(0, at - 1), at=at, rest=max(1, width - at - 1), side=side, step=step, said=said,
        end=f"step {last - 1}" if after and last - 1 > step else "",
    )  # fmt: skip


def stage_of(result: Localization) -> str:
    """The stage that the origin belongs to."""
    operation = result.operation
    if operation is None:
        first = next((leaf for leaf in result.parted if leaf.role == ORIGIN), None)
        return (
            ""
            if first is None
            else "generator"
            if first.component == "generator"
            else _BY_KIND.get(first.kind, "state")
        )
    if operation.how == "seed" or operation.kind in ("seed", "draw"):
        return "generator"
    if operation.how == "host value" or operation.phase == "data":
        return "data"
    if operation.phase in ("forward", "backward", "optimizer"):
        return operation.phase
    first = result.parted[0] if result.parted else None
    return _BY_KIND.get(first.kind, "data") if first is not None else "data"


def drawing(result: Localization) -> Markup:
    """The boxes, in two columns so that it is read on a phone too, joined in the order of the dataflow."""
    found = stages(result)
    height = 4 * (ROW + GAP) + 4
    parts = []
    for i, _ in enumerate(found[:-1]):
        x1, y1, x2, y2 = _line(i)
        parts.append(Markup('<path class="flow" d="M{} {}L{} {}"/>').format(x1, y1, x2, y2))
    for stage, (column, row) in zip(found, _PLACES, strict=True):
        x, y = LEFT + column * (BOX + GAP), 4 + row * (ROW + GAP)
        parts.append(
            Markup(
                '<g class="stage {}"><rect x="{}" y="{}" width="{}" height="{}" rx="6"/>'
                '<text class="title" x="{}" y="{}">{}</text><text x="{}" y="{}">{}</text></g>'
            ).format(
                stage.state,
                x,
                y,
                BOX,
                ROW,
                x + 10,
                y + 18,
                stage.title + (" (origin)" if stage.state == ORIGIN else ""),
                x + 10,
                y + 35,
                _cut(stage.about, TEXT),
            )
        )
    said = "; ".join(f"{stage.title}: {stage.state}" for stage in found)
    body = Markup("").join(parts)
    return Markup(
        '<svg class="chart dataflow" viewBox="0 0 {} {}" role="img" aria-labelledby="flow-title flow-text">'
        '<title id="flow-title">Dataflow of the step</title><desc id="flow-text">{}</desc>{}</svg>'
    ).format(WIDTH, height, said, body)


def _line(i: int) -> tuple[int, int, int, int]:
    """From the middle of one box to that of the next."""
    (c1, r1), (c2, r2) = _PLACES[i], _PLACES[i + 1]

    def middle(column: int, row: int) -> tuple[int, int]:
        return LEFT + column * (BOX + GAP) + BOX // 2, 4 + row * (ROW + GAP) + ROW // 2

    return (*middle(c1, r1), *middle(c2, r2))

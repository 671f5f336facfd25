"""Inline SVG: one step's dataflow, with the stage where the twins part first marked. The style sheet colours it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.localize.result import INHERITED, ORIGIN, Localization
from orchestrator.report import format as fmt

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
        about = f"{len(leaves)} part" if len(leaves) > 1 else leaves[0] if leaves else ""
        if name == where and result.operation is not None:
            about = result.operation.name
        out.append(Stage(name, title, state, about or ("agrees" if state == AGREES else "")))
    return out


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
                fmt.cut(stage.about, 28),
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

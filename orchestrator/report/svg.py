"""Inline SVG: how the difference grows over the steps. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.compare.verdict import GrowthPoint
from orchestrator.report import format as fmt

# Drawn at 400 units and shown 340 to 420 pixels wide, so that its text is read at its own size on a phone as well.
WIDTH, HEIGHT = 400, 210
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 18, 38
POINTS = 240  # more than one a pixel would only make the file larger


@dataclass(frozen=True)
class Point:
    """A point of the chart; ``x`` is the step, or its position where steps are not numbers."""

    x: float
    step: str
    leaves: int
    difference: float


def growth_charts(points: Sequence[GrowthPoint]) -> list[tuple[str, Markup]]:
    """Two charts with their captions: leaves parted, and the largest difference on a logarithmic scale.

    Both are drawn over the same steps. Of several steps that share a pixel the largest values are shown.
    """
    if not points:
        return []
    reduced = reduce(_points(points))
    charts = [("Leaves that part, by step", _leaves(reduced))]
    if any(_on_log_scale(point.difference) or not math.isfinite(point.difference) for point in reduced):
        charts.append(("Largest |B \N{MINUS SIGN} A| of a checksum, by step, on a log scale", _differences(reduced)))
    return charts


def _points(points: Sequence[GrowthPoint]) -> list[Point]:
    numbered = all(isinstance(point.step, int) and abs(point.step) < 2**53 for point in points)
    return [
        Point(
            float(point.step) if numbered else float(i),
            fmt.cut(str(point.step), 24),
            point.leaves_parted,
            point.max_abs,
        )
        for i, point in enumerate(points)
    ]


def reduce(points: Sequence[Point], limit: int = POINTS) -> list[Point]:
    """At most ``limit`` points: each stands for a run of neighbours and holds the largest of their values."""
    if len(points) <= limit:
        return list(points)
    out = []
    for i in range(limit):
        group = points[i * len(points) // limit : (i + 1) * len(points) // limit]
        worst = max(group, key=lambda p: (not math.isfinite(p.difference), p.difference))
        out.append(Point(group[0].x, group[0].step, max(p.leaves for p in group), worst.difference))
    return out


def _on_log_scale(number: float) -> bool:
    return math.isfinite(number) and number > 0


def _leaves(points: Sequence[Point]) -> Markup:
    most = max(point.leaves for point in points)
    ticks = nice_ticks(0, max(most, 1))
    top = max(ticks[-1], most, 1)
    x = _scale_x(points)

    def y(leaves: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - leaves / top)

    base = f"{y(0):.1f}"
    coordinates = [(x(p.x), y(p.leaves)) for p in points]
    steps = f"M{coordinates[0][0]:.1f} {base}" + "".join(
        f"V{py:.1f}" + (f"H{coordinates[i + 1][0]:.1f}" if i + 1 < len(coordinates) else "")
        for i, (_, py) in enumerate(coordinates)
    )
    parts = [_grid([(y(t), _tick(t)) for t in ticks]), _x_axis(points, x)]
    parts.append(Markup('<path class="area" d="{}V{}Z"/><path class="line" d="{}"/>').format(steps, base, steps))
    parts.append(_dot(coordinates[0]))
    first, last = points[0], points[-1]
    said = (
        f"{fmt.count(first.leaves, 'leaf', 'leaves')} part at step {first.step}, {last.leaves:,} at step {last.step}; "
        f"at most {most:,}."
    )
    return _svg("leaves", "Leaves that part, by step", said, "leaves", parts)


def _differences(points: Sequence[Point]) -> Markup:
    sizes = [point.difference for point in points if _on_log_scale(point.difference)]
    low = math.floor(math.log10(min(sizes))) if sizes else 0
    high = math.ceil(math.log10(max(sizes))) if sizes else 1
    high = max(high, low + 1)
    every = max(1, math.ceil((high - low) / 5))
    x = _scale_x(points)

    def y(size: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (math.log10(size) - low) / (high - low))

    path, pen = [], "M"
    shown = [(x(p.x), y(p.difference)) for p in points if _on_log_scale(p.difference)]
    for point in points:
        if _on_log_scale(point.difference):
            path.append(f"{pen}{x(point.x):.1f} {y(point.difference):.1f}" + ("h0" if pen == "M" else ""))
            pen = "L"
        else:
            pen = "M"
    marks = [(y(10.0**e), f"1e{e}" if e else "1") for e in range(low, high + 1, every) if -308 <= e <= 308]
    parts = [_grid(marks), _x_axis(points, x), Markup('<path class="line" d="{}"/>').format("".join(path))]
    if shown:
        parts.append(_dot(shown[0]))
    bad = [point for point in points if not math.isfinite(point.difference)]
    for point in bad:
        parts.append(
            Markup('<path class="bad" d="M{0} {1}l7 7m0 -7l-7 7"/>').format(f"{x(point.x) - 3.5:.1f}", TOP - 3)
        )
    said = f"From {sizes[0]:.3g} to {sizes[-1]:.3g}; at most {max(sizes):.3g}." if sizes else ""
    said += f" Crosses at the top: the difference is not a finite number (from step {bad[0].step})." if bad else ""
    return _svg(
        "size", "Largest checksum difference, by step, on a log scale", said.strip(), "|B \N{MINUS SIGN} A|", parts
    )


def _scale_x(points: Sequence[Point]) -> Callable[[float], float]:
    low, high = points[0].x, max(point.x for point in points)
    low = min(low, *(point.x for point in points)) if len(points) > 1 else low
    width = high - low or 1.0
    return lambda v: LEFT + (WIDTH - LEFT - RIGHT) * ((v - low) / width)


def nice_ticks(low: float, high: float, most: int = 5) -> list[int]:
    """Whole numbers at distances of 1, 2 or 5 times a power of ten, at most ``most`` + 1 of them, within low..high."""
    span = max(high - low, 1)
    distance = 1
    for power in range(20):
        for factor in (1, 2, 5):
            distance = factor * 10**power
            if span / distance <= most:
                start = math.ceil(low / distance)
                return [i * distance for i in range(start, math.floor(high / distance) + 1)]
    return [math.ceil(low), math.floor(high)]


def _tick(number: int) -> str:
    return f"{number:,}" if abs(number) < 1_000_000 else f"{number:.3g}".replace("e+0", "e").replace("e+", "e")


def _x_axis(points: Sequence[Point], x: Callable[[float], float]) -> Markup:
    base = HEIGHT - BOTTOM
    parts = [Markup('<path class="axis" d="M{} {}H{}"/>').format(LEFT, base, WIDTH - RIGHT)]
    numbered = all(point.step == f"{point.x:.0f}" for point in points)
    if numbered and len(points) > 1:
        marks = [(float(t), _tick(t)) for t in nice_ticks(points[0].x, points[-1].x)]
        if not marks:
            marks = [(points[0].x, points[0].step)]
    else:
        marks = [(point.x, point.step) for point in ([points[0], points[-1]] if len(points) > 1 else points)]
    for at, text in marks:
        px = x(at)
        anchor = (
            "end" if px > WIDTH - 60 and len(text) > 3 else "start" if px < LEFT + 20 and len(text) > 8 else "middle"
        )
        parts.append(
            Markup('<path class="axis" d="M{0} {1}v4"/><text x="{0}" y="{2}" text-anchor="{3}">{4}</text>').format(
                f"{px:.1f}", base, base + 17, anchor, text
            )
        )
    middle = (LEFT + WIDTH - RIGHT) // 2
    parts.append(Markup('<text class="name" x="{}" y="{}" text-anchor="middle">step</text>').format(middle, HEIGHT - 5))
    return Markup("").join(parts)


def _grid(marks: Sequence[tuple[float, str]]) -> Markup:
    return Markup("").join(
        Markup('<path class="grid" d="M{0} {1}H{2}"/><text x="{3}" y="{4}" text-anchor="end">{5}</text>').format(
            LEFT, f"{y:.1f}", WIDTH - RIGHT, LEFT - 6, f"{y + 4:.1f}", text
        )
        for y, text in marks
    )


def _dot(at: tuple[float, float]) -> Markup:
    return Markup('<circle class="dot" cx="{}" cy="{}" r="3.5"/>').format(f"{at[0]:.1f}", f"{at[1]:.1f}")


def _svg(name: str, title: str, description: str, unit: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-labelledby="{id}-t {id}-d">'
        '<title id="{id}-t">{title}</title><desc id="{id}-d">{desc}</desc>'
        '<text class="name" x="{left}" y="10" text-anchor="end">{unit}</text>{body}</svg>'
    ).format(
        w=WIDTH,
        h=HEIGHT,
        id=f"chart-{name}",
        title=title,
        desc=description,
        unit=unit,
        left=LEFT - 6,
        body=Markup("").join(parts),
    )

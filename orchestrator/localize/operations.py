"""From a step to the operation: twins with events of the window around it, and further back where that is too late."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from orchestrator.localize import beyond, bounded
from orchestrator.localize.events import align
from orchestrator.localize.facts import Lead, leads
from orchestrator.localize.origins import Aligned, Origin
from orchestrator.localize.pair import Kind, Pair, Window
from orchestrator.localize.sequences import said
from orchestrator.localize.session import Session
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Event, Trace

# A window is moved back by doubling: 1, 4, 16 ... steps, then to the start of the process.
BACK = 4
# The very first pair records these steps, where most programs part: that saves a pair.
FIRST_LOOK = Window(level="operations", first_step=0, last_step=2)


@dataclass(frozen=True, kw_only=True)
class Found:
    """One trial at operations level. ``origin`` is None when the streams say nothing though the rows part."""

    pair: Pair
    steps: StepsFound
    origin: Origin | None
    aligned: Aligned
    leads: tuple[Lead, ...]
    first_step: int
    children: int
    cut: bool = False  # the streams go on after what was held side by side
    early: bool = False  # of the first look, before any leaf showed it


def at_once(pair: Pair, steps: StepsFound, resumed: bool = False) -> Found | None:
    """What the very first pair's events say; None where it parted after they end, or where they say nothing."""
    if steps.step is not None and steps.step > (FIRST_LOOK.last_step or 0):
        return None
    found = concluded(pair, steps, 0, resumed)
    return found if found.origin is not None or steps.step is None else None


def first_look(pair: Pair, steps: StepsFound) -> Found | None:
    """An origin in the very first steps of a pair whose leaves part later, which a later trial may confirm."""
    found = concluded(pair, steps, 0)
    return dataclasses.replace(found, early=True) if found.origin is not None else None


def look(
    session: Session, kind: Kind, steps: StepsFound, what: str, dump: tuple[tuple[str, int], ...] = ()
) -> Found | None:
    """Twins with events around the step; None when they agreed this time. ``dump``: events whose tensors are kept."""
    first, last = window_of(steps)
    if session.request.other is not None and last is not None:
        last += 1  # what a resume lacks may be read only at the end of the step, after its optimizer
    moved = 0
    while True:
        window = Window(
            level="operations", first_step=first, last_step=last, dump=dump,
            stop_after=None if last is None else last + 1,
        )  # fmt: skip
        pair = session.run(kind, window, what)
        seen = session.compared(pair)
        if seen.step is None and not seen.leaf:
            session.drop(pair)
            return None
        resumed = session.request.other is not None
        found = concluded(pair, seen, first, resumed)
        earlier = seen.step is not None and last is not None and seen.step <= first and first > 0
        if (
            not resumed
            and first > 0
            and (earlier or found.origin is None or found.origin.outside)
            and session.affords(2.0)
        ):
            moved += 1
            first = _further_back(first, seen.step if earlier else None, moved)
            if seen.step is not None and last is not None:
                last = max(seen.step, first)
            session.listener.stage(
                f"the origin lies before what was recorded; once more, from "
                f"{'the start of the process' if first == 0 else f'step {first}'}"
            )
            session.drop(pair)
            continue
        if earlier and not resumed and seen.step is not None and seen.step < first:
            # What is recorded begins after the twins parted: what differs first there merely inherits it.
            found = dataclasses.replace(found, origin=None)
        return found


def window_of(steps: StepsFound) -> tuple[int, int | None]:
    """The step itself and the one before, whose end made what this one reads."""
    if steps.step is None or (steps.declared and not steps.traced_rows):
        return 0, None  # no step is seen from outside
    seen = steps.traced_step if steps.traced_step is not None else steps.step + int(steps.declared)
    last = min(max(steps.step, seen), steps.step + 1)
    if steps.step <= (FIRST_LOOK.last_step or 0):
        return 0, last
    return max(0, min(steps.step, seen) - 1), last


def _further_back(first: int, parted: int | None, moved: int) -> int:
    start = first if parted is None else min(first, parted)
    if start <= BACK or moved > 2:
        return 0
    return max(0, start - int(BACK**moved))


def concluded(pair: Pair, seen: StepsFound, first: int, resumed: bool = False) -> Found:
    """What a pair's events say, from step ``first`` on; its children's where the main process says nothing."""
    main = pair.a.main.name
    # A resumed twin did other things before; only what both do from the parted step on can be held side by side.
    start = (seen.step or 0) if resumed else 0
    streams = bounded.read(pair.a.main, pair.b.main, start)
    aligned = align(streams.a, streams.b, process=main, resumed=resumed, cut=streams.cut)
    if resumed and start > first and (aligned.origin is None or aligned.origin.outside):
        # A state that the step reads parted was made at the end of the one before, if the resumed twin made that one.
        earlier = bounded.read(pair.a.main, pair.b.main, start - 1)
        before = align(earlier.a, earlier.b, process=main, resumed=True, cut=earlier.cut)
        both = any(event.step == start - 1 for event in earlier.b)
        if both and before.origin is not None and before.origin.a.step == start - 1 and not before.origin.outside:
            streams, aligned = earlier, before
    origin = aligned.origin if seen.leaf != beyond.CRASH else None  # a stream that ends there differs in its length
    if resumed and origin is not None and origin.label.startswith("generator") and _unnumbered(seen):
        origin = None
    origin = origin or beyond.alone(streams.a, streams.b, seen.step, main)
    children = [name for name in pair.a.processes if name != main]
    host = aligned.host
    if children and (origin is None or origin.outside):
        for name in children:
            if name not in pair.b.processes:
                continue
            below = of_process(pair, name)
            if below.origin is not None and not of_another_task(pair, below.origin):
                origin, host = below.origin, below.host
                break
    return Found(
        pair=pair,
        steps=seen,
        origin=origin,
        aligned=dataclasses.replace(aligned, host=host),
        leads=leads(host, origin),
        first_step=first,
        children=len(children),
        cut=streams.cut,
    )


def _unnumbered(seen: StepsFound) -> bool:
    """Whether the resumed twin's first row parts, whose step had no number while it went on, and generators agree."""
    first = seen.row == 0 and (seen.step or 0) > 0
    return first and not any(leaf.leaf.startswith("generator") for leaf in seen.parted)


def of_another_task(pair: Pair, origin: Origin) -> bool:
    """Whether a child only did there what another child did in the other twin: which takes which task harms nobody.

    One of both is enough: a twin that was ended may have left the other task undone.
    """
    return any(_made_by_a_child(trace, event) for trace, event in ((pair.b, origin.a), (pair.a, origin.b)))


def _made_by_a_child(trace: Trace, wanted: Event) -> bool:
    children = (process for name, process in trace.processes.items() if name != trace.main.name)
    return any(said(event) == said(wanted) for process in children for event in process.events())


def of_process(pair: Pair, name: str) -> Aligned:
    """Both twins' streams of one process, aligned."""
    streams = bounded.read(pair.a.processes[name], pair.b.processes[name])
    # A child that goes on alone took more of the work, or its twin was ended sooner.
    return align(streams.a, streams.b, process=name, cut=True)

"""Choices by measured time, provoked: twins that differ in nothing but in how long things seem to take.

Whether a measurement decides what is computed shows in one such pair, where hostile twins would need luck: both measure
nearly the same.
"""

from __future__ import annotations

import dataclasses

from orchestrator.localize.operations import FIRST_LOOK, at_once, concluded, look
from orchestrator.localize.pair import Kind, Pair
from orchestrator.localize.races import Raced
from orchestrator.localize.result import PACE, Trial
from orchestrator.localize.session import Session
from orchestrator.localize.steps import StepsFound

BEYOND = 2  # steps after the one that parted first: measured time may part them a little later
KIND = Kind(name=PACE, hostilities=(), pace=(1, 2))
CLOCKS = ("perf_counter", "monotonic", "process_time", "thread_time", "time.time", "timeit", "triton.autotune")


def measures(pair: Pair) -> bool:
    """Whether the program was seen to read a clock, or to let Triton measure."""
    return pair.a.mentions(CLOCKS) or pair.b.mentions(CLOCKS)


def provoke(session: Session, steps: StepsFound) -> Raced | None:
    """Twins that differ in measured time alone, from the first step on, and then around the step where they part; None
    where the time does not allow for one."""
    if not session.affords(1.5):
        return None
    what = "does measured time decide? twins that differ in how long things seem to take alone"
    stop = None if steps.step is None else steps.step + BEYOND
    pair = session.run(KIND, dataclasses.replace(FIRST_LOOK, stop_after=stop), what)
    seen = session.compared(pair)
    if not seen.leaf:
        session.trials.append(Trial(number=len(session.trials) + 1, pair=PACE, note="agreed"))
        session.drop(pair)
        return Raced(kind=KIND, found=None)
    found = at_once(pair, seen)
    if found is None and session.affords(1.5):
        found = look(session, KIND, seen, f"the same, with every operation around step {seen.step}")
    return Raced(kind=KIND, found=found or concluded(pair, seen, 0))


def beside(kind: Kind) -> Kind:
    """The same twins, that also measure at another pace."""
    return dataclasses.replace(kind, pace=KIND.pace)

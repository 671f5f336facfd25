"""Choices by measured time, provoked: twins that differ in nothing but in how long things seem to take.

Whether a measurement decides what is computed shows in one such pair, where hostile twins would need luck: both measure
nearly the same.
"""

from __future__ import annotations

import dataclasses

from orchestrator.localize.facts import PACE
from orchestrator.localize.pair import Kind, Pair

KIND = Kind(name=PACE, hostilities=(), pace=(1, 2))
CLOCKS = ("perf_counter", "monotonic", "process_time", "thread_time", "time.time", "timeit", "triton.autotune")


def measures(pair: Pair) -> bool:
    """Whether the program was seen to read a clock, or to let Triton measure."""
    return pair.a.mentions(CLOCKS) or pair.b.mentions(CLOCKS)


def beside(kind: Kind) -> Kind:
    """The same twins, that also measure at another pace."""
    return dataclasses.replace(kind, pace=KIND.pace)

"""Choices by measured time, provoked: twins that differ in nothing but in how long things seem to take.

Whether a measurement decides what is computed shows in one such pair, where hostile twins would need luck: both measure
nearly the same.
"""

from __future__ import annotations

import dataclasses
from itertools import islice

from orchestrator.localize.pair import Kind, Pair

PACE = "pace"
KIND = Kind(name=PACE, hostilities=(), pace=(1, 2))
RATE = 0.8  # how often such a pair parts where measured time decides, cautiously
CLOCKS = ("perf_counter", "monotonic", "process_time", "thread_time", "time.time", "timeit", "triton.autotune")
MOST = 200_000


def measures(pair: Pair) -> bool:
    """Whether the program was seen to read a clock, or to let Triton measure."""
    words = [word.encode() for word in CLOCKS]
    for trace in (pair.a, pair.b):
        for process in trace.processes.values():
            for line in islice(process.event_lines(), MOST):
                head = line.partition(b'"ins"')[0]
                if any(word in head for word in words):
                    return True
    return False


def beside(kind: Kind) -> Kind:
    """The same twins, that also measure at another pace."""
    return dataclasses.replace(kind, pace=KIND.pace)

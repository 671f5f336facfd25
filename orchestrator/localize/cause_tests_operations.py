"""Observations about the operation that parts: what it is known for, alone and with a switch: functions over Facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from foxrun.tracing.words import ADDS, ASKS
from orchestrator.localize.beyond import is_past
from orchestrator.localize.cause_tests import computed, remedied, test
from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Evidence, Test
from orchestrator.localize.facts import Facts
from orchestrator.localize.operation_kinds import (
    ADDS_ATOMICALLY,
    ATTENTION,
    CONVOLUTIONS,
    MATMULS,
    REDUCTIONS,
    SCAN_NAME,
    SCANS,
    WRITES_BY_INDEX,
)
from orchestrator.localize.result import CONTROL_FLOW


def operation_in(names: frozenset[str], what: str, weight: int = STRONG, *, unless: str = "") -> Test:
    """The origin is one of these operations, with equal inputs."""

    def look(facts: Facts) -> Evidence | None:
        if (
            not computed(facts)
            or facts.op not in names
            or (unless and unless in (facts.origin.a.shapes if facts.origin else ""))
        ):
            return None
        assert facts.origin is not None
        return Evidence(text=f"{facts.origin.a.name} {what}, and its inputs agree", weight=weight)

    look.__doc__ = f"is the origin an operation that {what}, with equal inputs?"
    return look


@test(STRONG)
def accumulates_by_index(facts: Facts) -> str | None:
    """is the origin index_put_ that accumulates?"""
    if (
        computed(facts)
        and facts.op in ("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put", "put_", "put")
        and facts.origin
        and "True" in facts.origin.a.shapes
    ):
        return f"{facts.origin.a.name} accumulates: several threads add to one element"
    return None


def words_in(pattern: re.Pattern[str], what: str, weight: int) -> Test:
    """Words of the origin's name."""

    def look(facts: Facts) -> Evidence | None:
        if not computed(facts) or facts.origin is None:
            return None
        found = pattern.search(f"{facts.origin.a.name} {facts.origin.a.where} {facts.origin.a.module}")
        return Evidence(text=f"{facts.origin.a.name} {what}", weight=weight) if found else None

    look.__doc__ = f"is the origin an operation that {what}?"
    return look


def family(facts: Facts) -> str:
    """What the origin's operation is known for: its own way of giving other sums; empty where it is known for none."""
    if facts.origin is None:
        return ""
    name = facts.origin.a.name
    if accumulates_by_index(facts) is not None or facts.op in ADDS_ATOMICALLY:
        return "adds"
    if facts.op in WRITES_BY_INDEX:
        return "writes"
    if facts.op in SCANS or SCAN_NAME.search(name):
        return "scans"
    if CONVOLUTIONS.search(name):
        return "convolves"
    return "multiplies" if facts.op in MATMULS or ATTENTION.search(name) else ""


def replay_parts_here(*families: str) -> Test:
    """The operation alone, on equal inputs, in one process: it speaks for the causes that its kind is known for."""

    def look(facts: Facts) -> Evidence | None:
        r = facts.replay
        if r is None or not r.runs or not r.parted or not computed(facts):
            return None
        known = family(facts)
        if known and known not in families:
            return None
        text = f"replayed alone on its own inputs it differed in {r.parted} of {r.runs} runs"
        return Evidence(text=text, weight=STRONG if known else PLAIN)

    look.__doc__ = "does the operation alone, on equal inputs, give different outputs within one process?"
    return look


def made_equal_by(name: str, *families: str) -> Test:
    """A switch that several causes share speaks for those that the operation's kind is known for."""
    measured = remedied(name)

    def look(facts: Facts) -> Evidence | None:
        known = family(facts)
        return measured(facts) if not known or known in families else None

    look.__doc__ = measured.__doc__
    return look


@test(PLAIN)
def duplicates(facts: Facts) -> str | None:
    """does the index hold one place twice?"""
    return "its index holds one place more than once" if facts.duplicates else None


@test(PLAIN)
def kernel_parts(facts: Facts) -> str | None:
    """is it a kernel of the program's own?"""
    if computed(facts) and facts.kind == "kernel" and facts.origin is not None:
        return f"{facts.origin.a.name} is a kernel of its own, and its inputs agree"
    return None


@test(STRONG)
def convolution_on_cuda(facts: Facts) -> str | None:
    """is it a convolution or a recurrent cell on a GPU?"""
    if computed(facts) and facts.cuda and facts.origin is not None and CONVOLUTIONS.search(facts.origin.a.name):
        return f"{facts.origin.a.name} runs in cuDNN, and its inputs agree"
    return None


@test(PLAIN)
def matmul(facts: Facts) -> str | None:
    """is it a product that a library computes?"""
    if (
        computed(facts)
        and facts.origin is not None
        and (facts.op in MATMULS or CONVOLUTIONS.search(facts.origin.a.name))
    ):
        return f"{facts.origin.a.name} is computed by a library that chooses among algorithms, and its inputs agree"
    return None


ADDS_IN_SOURCE = re.compile(r"atomic", re.IGNORECASE)


@test(STRONG)
def low_precision(facts: Facts) -> str | None:
    """is it a product in reduced precision?"""
    if not computed(facts) or facts.op not in MATMULS or facts.origin is None:
        return None
    if any(
        _knob(header, "float32_matmul_precision") in ("high", "medium") for header in (facts.header, facts.other_header)
    ):
        return f"{facts.origin.a.name} may run in TF32"
    if re.search(r"\b(bf16|f16)\[", facts.origin.a.shapes):
        return f"{facts.origin.a.name} multiplies 16-bit floats"
    return None


def _knob(header: Mapping[str, Any], name: str) -> Any:
    knobs = header.get("knobs")
    return knobs.get(name) if isinstance(knobs, dict) else None


def knob_is(name: str, value: object, weight: int = PLAIN) -> Test:
    """A setting of torch, for an operation of the GPU."""

    def look(facts: Facts) -> Evidence | None:
        if not (computed(facts) and facts.knob(name) == value):
            return None
        return Evidence(text=f"{name} is {value!r}", weight=weight)

    look.__doc__ = f"is {name} {value!r}?"
    return look


@test(STRONG)
def config_differs(facts: Facts) -> str | None:
    """did a kernel run with another configuration?"""
    origin = facts.origin
    if origin is None or origin.a.kind != "kernel" or origin.a.value == origin.b.value:
        return None
    if is_past(origin.a) or is_past(origin.b):
        return None
    return f"the kernel ran as {origin.a.value} and as {origin.b.value}"


@test(WEAK)
def reduces(facts: Facts) -> str | None:
    """is it a reduction on a CPU?"""
    if (
        computed(facts)
        and not facts.cuda
        and facts.origin is not None
        and (facts.op in REDUCTIONS or facts.op in MATMULS)
    ):
        return f"{facts.origin.a.name} is split by the number of threads"
    return None


def _asked(facts: Facts) -> str:
    """What the library of a native function imports, where that function is the origin and got equal inputs."""
    if not computed(facts) or facts.origin is None or not facts.origin.a.value.startswith(ASKS):
        return ""
    return facts.origin.a.value


def asks_for(what: str) -> Test:
    """A native function whose library imports the system's entropy, or its clock."""

    def look(facts: Facts) -> Evidence | None:
        text = _asked(facts)
        if what not in text:
            return None
        return Evidence(text=f"{facts.op} is a native function, its inputs agree, and {text}", weight=STRONG)

    look.__doc__ = f"does a native function's library ask the system for {what}?"
    return look


@test(STRONG)
def asks_for_nothing(facts: Facts) -> str | None:
    """is it a native function without threads, clock and entropy?"""
    text = _asked(facts)
    if not text or any(word in text for word in ("entropy", "a clock", "threads")):
        return None
    return f"{facts.op} is a native function, its inputs agree, and its library has no threads, clock or entropy"


@test(-STRONG)
def asks_for_no_threads(facts: Facts) -> str | None:
    """is it a native function whose library starts no threads?"""
    text = _asked(facts)
    return "its library starts no threads" if text and "threads" not in text else None


@test(STRONG)
def graph_adds(facts: Facts) -> str | None:
    """is it a graph of torch.compile's whose code adds atomically?"""
    if not computed(facts) or facts.origin is None or facts.origin.a.value != ADDS:
        return None
    return "it is what torch.compile's inductor made of the program, its inputs agree, and its code adds atomically"


def own_kernel_adds(facts: Facts) -> Evidence | None:
    """is it a kernel of the program's own whose code adds atomically?"""
    if (
        not computed(facts)
        or facts.kind != "kernel"
        or facts.origin is None
        or facts.origin.a.value != facts.origin.b.value
    ):
        return None
    text = f"{facts.origin.a.name} is a kernel of the program's own, and its inputs agree"
    if any(ADDS_IN_SOURCE.search(line) for line in facts.lines):
        return Evidence(text=f"{text}; the code there adds atomically", weight=STRONG)
    if any(ADDS_IN_SOURCE.search(line) for line in facts.code):
        return Evidence(text=f"{text}; code in its file adds atomically", weight=PLAIN)
    return None


@test(DECISIVE)
def casts_in_one(facts: Facts) -> str | None:
    """does one twin compute in 16 bits where the other does not?"""
    if facts.origin is None or facts.how != CONTROL_FLOW:
        return None
    narrow = [
        bool(re.search(r"\b(bf16|f16)\[|dtype=(bfloat16|float16)", e.shapes)) for e in (facts.origin.a, facts.origin.b)
    ]
    return "one twin computes in 16 bits where the other does not" if narrow[0] != narrow[1] else None

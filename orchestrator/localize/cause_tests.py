"""Observations about measurements, replays and memory never written: small functions over Facts."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, Evidence, Test
from orchestrator.localize.facts import Facts
from orchestrator.localize.operation_kinds import (
    COMPUTES,
)
from orchestrator.localize.result import CONTROL_FLOW, OUTPUTS_DIFFER
from orchestrator.localize.trace import Event


def test(weight: int) -> Callable[[Callable[[Facts], str | None]], Test]:
    """A test from a function that gives the text of its evidence, or None."""

    def made(function: Callable[[Facts], str | None]) -> Test:
        def look(facts: Facts) -> Evidence | None:
            text = function(facts)
            return None if text is None else Evidence(text=text, weight=weight)

        look.__doc__ = function.__doc__
        look.__name__ = function.__name__
        return look

    return made


def narrowed(name: str) -> Test:
    """Twins that differ in this alone."""

    def look(facts: Facts) -> Evidence | None:
        parted = facts.narrowed.get(name)
        if parted is None:
            return None
        if parted and not facts.narrowed.get("nothing"):
            return Evidence(text=f"twins that differ in {name} alone part", weight=DECISIVE)
        return None if parted else Evidence(text=f"twins that differ in {name} alone agreed", weight=-PLAIN)

    look.__doc__ = f"do twins that differ in {name} alone part?"
    return look


def remedied(name: str, weight: int = STRONG, *, against: int = STRONG) -> Test:
    """With the switch that rules this cause out and nothing else."""

    def look(facts: Facts) -> Evidence | None:
        parted = facts.remedied.get(name)
        if parted is None:
            if name not in facts.moved:
                return None
            return Evidence(text=f"with {name} a pair parted elsewhere", weight=min(weight, PLAIN))
        if parted:
            return Evidence(text=f"{name} changes nothing", weight=-against)
        return Evidence(text=f"{name} alone makes the twins agree", weight=weight)

    look.__doc__ = f"does {name} alone make the twins agree?"
    return look


def computed(facts: Facts) -> bool:
    """Whether an operation got equal inputs and gave different outputs, of memory that it had written."""
    origin = facts.origin
    return (
        origin is not None
        and origin.how == OUTPUTS_DIFFER
        and not origin.outside
        and not origin.unset
        and origin.a.kind in COMPUTES
    )


def draws_alone(facts: Facts) -> Event | None:
    """The draw that one twin makes where the other runs something else, which may be a draw at another line."""
    origin = facts.origin
    if (
        origin is None
        or facts.how != CONTROL_FLOW
        or (origin.a.name, origin.a.where) == (origin.b.name, origin.b.where)
    ):
        return None
    found = (origin.alone, origin.b, origin.a)
    return next((event for event in found if event is not None and event.kind == "draw"), None)


@test(-PLAIN)
def replay_agrees(facts: Facts) -> str | None:
    """does the operation alone give equal outputs each time, under other threads and memory as well?"""
    r = facts.replay
    if r is None or r.runs < 10 or r.parted or any("parted" in text for text in r.varied.values()):
        return None
    return f"replayed alone it gave equal bits in {r.runs} runs"


def replay_varies(what: str, weight: int = STRONG) -> Test:
    """Replayed under another setting."""

    def look(facts: Facts) -> Evidence | None:
        text = facts.replay.varied.get(what, "") if facts.replay is not None else ""
        if text.startswith("parted") and facts.replay is not None and not facts.replay.parted:
            return Evidence(text=f"replayed alone it differs only with other {what}", weight=weight)
        return None

    look.__doc__ = f"does the operation alone differ with other {what} only?"
    return look


@test(DECISIVE)
def reads_unset(facts: Facts) -> str | None:
    """was memory read that nobody had written?"""
    origin = facts.origin
    if origin is None or not origin.unset:
        return None
    return (
        f"{origin.a.name} at {origin.a.where or 'an unknown line'} made memory that nobody wrote whole; {origin.detail}"
    )


@test(STRONG)
def filled_hides(facts: Facts) -> str | None:
    """do the twins agree when fresh memory is filled?"""
    if facts.remedied.get("filled-memory") is False:
        return "the twins agree when fresh memory is filled with one value, and part when it is not"
    return None


@test(-STRONG)
def filled_parts(facts: Facts) -> str | None:
    """do the twins part when fresh memory is filled?"""
    return (
        "the twins part though fresh memory is filled with one value" if facts.remedied.get("filled-memory") else None
    )


@test(STRONG)
def threads_alone(facts: Facts) -> str | None:
    """do twins agree at one thread count and part at two different ones?"""
    if facts.parted_kind == "threads" and facts.hostile_agreed and facts.origin is not None:
        n = facts.hostile_agreed
        return f"{n} pair{'s' if n > 1 else ''} with equal thread counts agreed; with different ones the twins part"
    return None


@test(-STRONG)
def parts_at_one_count(facts: Facts) -> str | None:
    """do twins part at equal thread counts?"""
    return "the twins part with equal thread counts too" if facts.parted_kind != "threads" and computed(facts) else None


@test(PLAIN)
def machine_read_before(facts: Facts) -> str | None:
    """did the program read what the machine has before a sum came out in another way?"""
    lead = facts.lead("machine")
    return f"{lead.text}, and then equal inputs give other sums" if lead is not None and computed(facts) else None

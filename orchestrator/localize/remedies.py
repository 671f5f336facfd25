"""Switches remedies on, runs the twins again, and goes on to the next origin, until they agree or nothing is left."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from foxrun.tracing.switches import SWITCHES
from orchestrator.errors import DeadlinePassed, JobFailed
from orchestrator.localize.cause_table import BY_NAME
from orchestrator.localize.causes import CERTAIN, POSSIBLE, judge
from orchestrator.localize.facts import Facts
from orchestrator.localize.near_origin import with_source
from orchestrator.localize.operations import Found, concluded, window_of
from orchestrator.localize.origins import Origin
from orchestrator.localize.pair import Kind, Pair, Window
from orchestrator.localize.result import (
    CHANGED_BEHIND,
    CONTROL_FLOW,
    DELAYS,
    HIDDEN,
    HOST_VALUE,
    NOT_ENOUGH,
    NOT_TRIED,
    OUTPUTS_DIFFER,
    PACE,
    REORDERED,
    VERIFIED,
    Cause,
    Operation,
    Remedy,
    pairs_for,
)
from orchestrator.localize.session import Session
from orchestrator.localize.steps import READ

MOST_ORIGINS = 4  # one behind the other
MOST_CANDIDATES = 5
ADDRESSES = "fixed-addresses"
_ORDERS = (REORDERED, CONTROL_FLOW)
HIDES = ("filled-memory", "deterministic-algorithms")
# Alike already in twins that differ in delays or in measured time alone: where such a pair parts, none is the cure.
ALIKE_IN_A_RACE = ("hash-seed", "sorted-listings", "filled-memory")
OF_SETS = ("hash-order", "iteration-order")
MOST_WALKS = 3
# How often a pair parts once another switch is on was seen in one pair alone.
SEEN_ONCE = 0.5


@dataclass(kw_only=True)
class Tried:
    """``facts`` with what was measured; ``further``: origins that showed when the first were out of the way."""

    facts: Facts
    remedies: list[Remedy]
    further: list[Operation] = field(default_factory=list)
    instead: Found | None = None  # what parts though the first origin is ruled out


def try_remedies(session: Session, kind: Kind, tried: Tried, causes: Sequence[Cause], rate: float) -> None:
    """Try the switches of the best candidates. What only filled memory makes equal is hidden, never verified.

    ``tried`` grows while it goes on, so that what is known stays when time or patience end.
    """
    facts = tried.facts
    on: tuple[str, ...] = ()
    current = facts
    for _ in range(MOST_ORIGINS):
        step = _first_that_changes(session, kind, current, causes, on, rate, tried)
        if step is None:
            break
        remedy, next_facts = step
        on = (*on, remedy) if remedy else on
        if next_facts is None:
            break
        current = next_facts
        causes = judge(current)


def _first_that_changes(
    session: Session, kind: Kind, facts: Facts, causes: Sequence[Cause], on: tuple[str, ...], rate: float, tried: Tried
) -> tuple[str, Facts | None] | None:
    """Try switches in turn: the name of the first that matters, and the facts of the next origin, None when clean.

    No name where the switch showed that the origin is another one: memory that its reader merely writes into.
    """
    if causes and causes[0].confidence == CERTAIN and not _switches(causes[0]):
        return None  # no switch is its cure, and what others came to would be luck
    for cause, name in _candidates(causes, facts):
        if out_of_question(name, dataclasses.replace(facts, remedied=tried.facts.remedied)):
            continue
        if name in on or any(r.name == name and not r.next_origin.startswith("the next") for r in tried.remedies):
            continue
        if not session.affords(1.2):
            _append(tried, name, cause.name, NOT_TRIED, 0, note="the time was over")
            return None
        switched = dataclasses.replace(kind, remedies=(*on, name))
        try:
            pair, parted, next_facts = _screen(session, switched, facts)
        except JobFailed as error:
            _append(tried, name, cause.name, NOT_ENOUGH, 1, next_origin=f"with it {error}")
            continue
        except DeadlinePassed:
            _append(tried, name, cause.name, NOT_TRIED, 0, note="the time was over")
            raise
        if parted is None:
            _measure(tried, name, False)
            known = min(rate, SEEN_ONCE) if on else rate
            hides = name == ADDRESSES or (name in HIDES and cause.name == "uninitialised-memory")
            shown = hides and facts.origin is not None and facts.origin.unset  # the trace itself shows it
            runs, failed = (1, False) if shown else _verify(session, switched, known)
            session.drop(pair)
            if failed:
                _measure(tried, name, True)  # that the first pair agreed was luck, and is no evidence
                _append(tried, name, cause.name, NOT_ENOUGH, runs, next_origin=f"it parted in one of {runs} pairs")
                continue
            if hides:
                _append(tried, name, cause.name, HIDDEN, runs)
                continue
            _append(
                tried,
                name,
                cause.name,
                VERIFIED,
                runs,
                note=_chance(known, runs),
                with_=on,
            )
            return name, None
        if name == "filled-memory" and _reader_parts(facts, next_facts):
            _append(tried, name, cause.name, NOT_ENOUGH, 1, next_origin=f"the next origin is {_named(next_facts)}")
            tried.instead, tried.facts = parted, next_facts
            return "", next_facts
        same = _same_origin(facts, next_facts)
        session.drop(pair)
        if same:
            _measure(tried, name, True)
            _append(tried, name, cause.name, NOT_ENOUGH, 1, next_origin="the same")
            continue
        tried.facts = dataclasses.replace(tried.facts, moved=tried.facts.moved | {name})
        _append(tried, name, cause.name, NOT_ENOUGH, 1, next_origin=f"the next origin is {_named(next_facts)}")
        return name, next_facts
    return None


def _candidates(causes: Sequence[Cause], facts: Facts) -> list[tuple[Cause, str]]:
    """Switches with their causes, in turn; fixed addresses last, since they fix the hash seed as well. Where a value of
    Python's differs and nothing says why, the order of a set is what it is most often."""
    found = [item for item in causes if item.name in BY_NAME][:MOST_CANDIDATES]
    unknown = facts.how == HOST_VALUE and bool(found) and found[0].confidence == POSSIBLE
    return sorted(
        ((cause, name) for cause in found for name in _in_turn(cause, facts)),
        key=lambda x: (x[1] == ADDRESSES, unknown and x[1] != "hash-seed"),
    )


def out_of_question(name: str, facts: Facts) -> bool:
    """Whether a switch cannot be the cure, so that twins which agree with it would be luck."""
    if name == ADDRESSES and (facts.resumed or facts.remedied.get("hash-seed") is not True):
        return True  # it fixes the hash seed as well, so that one must have been found to change nothing
    if name == "synchronous-copies":
        return not facts.cuda  # no copy of torch's is on its way
    if name == "ordered-completion":
        return not facts.unordered
    if name == "no-tf32":
        return not facts.cuda and facts.knob("float32_matmul_precision") == "highest"
    if name in ALIKE_IN_A_RACE:
        return any(facts.narrowed.get(kind) for kind in (DELAYS, PACE))
    # A native function does not ask torch which algorithms it may use.
    return name.startswith("deterministic-algorithms") and facts.kind == "kernel" and facts.op_is_native


def _in_turn(cause: Cause, facts: Facts) -> list[str]:
    """A cause's switches; where an order or a value of Python's differs, those of orders first."""
    orders = ("hash-seed", "sorted-listings") if facts.how in (REORDERED, HOST_VALUE) else ()
    return sorted(_switches(cause), key=lambda name: name not in orders)


def _switches(cause: Cause) -> tuple[str, ...]:
    return BY_NAME[cause.name].remedies if cause.name in BY_NAME else ()


def _screen(session: Session, kind: Kind, facts: Facts) -> tuple[Pair, Found | None, Facts]:
    """One pair with the switch on, with events around the step where it parted before: what it found, None when it
    agrees."""
    step = facts.steps.step
    first, last = window_of(facts.steps)
    if step is not None and step <= 8:
        first = 0
    window = Window(level="operations", first_step=first, last_step=last, stop_after=session.options.stop_after)
    pair = session.run(kind, window, f"the twins again, with {' and '.join(kind.remedies)}")
    seen = session.compared(pair)
    if not seen.leaf:
        return pair, None, facts
    found = concluded(pair, seen, first)
    origin = found.origin
    following = dataclasses.replace(
        facts, steps=seen, origin=origin, leads=found.leads, replay=None, remedied={}, narrowed={},
        in_child=origin is not None and origin.process != pair.a.main.name, threads=found.aligned.threads,
    )  # fmt: skip
    return pair, found, with_source(following, origin, pair)


def _reader_parts(facts: Facts, following: Facts) -> bool:
    """Whether what reads memory that nobody wrote parts as well when that memory is filled: it only wrote into it."""
    first, then = facts.origin, following.origin
    if first is None or not first.unset or first.reader is None or then is None or then.unset:
        return False
    return (first.reader.name, first.reader.where) == (then.a.name, then.a.where) and then.how == OUTPUTS_DIFFER


def _same_origin(before: Facts, after: Facts) -> bool:
    """Whether the twins still part where they did: by operation and line where these are known, else by leaf.

    Where the twins part by what they run, each has a place, and which twin has which is chance; of what they run in
    another order any may come first, and one that is cured lets them agree for longer. A pair that parts later
    than what was recorded, in the same leaf, shows nothing new either: the step of a race is chance as well.
    """
    a, b = before.origin, after.origin
    if a is not None and b is not None:
        no_further = a.process == b.process and a.how in _ORDERS and b.how in _ORDERS and b.before <= a.before
        return bool(_places(a) & _places(b)) or a.a.where == b.a.where != "" or no_further
    return before.steps.leaf == after.steps.leaf


def _places(origin: Origin) -> set[tuple[str, str]]:
    called = {("", origin.called)} if origin.called else set()
    return called | {(event.name, event.where) for event in (origin.a, origin.b, *origin.stretch)}


def _verify(session: Session, kind: Kind, rate: float) -> tuple[int, bool]:
    """More pairs with the switch on, up to what tells a cure from luck: (pairs in all, whether one parted)."""
    runs = 1
    while runs < pairs_for(rate) and session.affords():
        pair = session.run(
            kind,
            Window(stop_after=session.options.stop_after),
            f"again with {' and '.join(kind.remedies)} ({runs + 1} of {pairs_for(rate)})",
        )
        parted = bool(session.compared(pair).leaf)
        session.drop(pair)
        runs += 1
        if parted:
            return runs, True
    return runs, False


def _chance(rate: float, runs: int) -> str:
    luck = (1 - rate) ** runs
    return f"unchanged, a pair parts with some {rate:.0%}; that {runs} agree by luck has a chance of {luck:.1%}"


def _named(facts: Facts) -> str:
    if facts.origin is not None:
        return f"{facts.origin.a.name} at {facts.origin.a.where or 'an unknown line'}"
    return f"{facts.steps.leaf} at step {facts.steps.step}"


def _measure(tried: Tried, name: str, parted: bool) -> None:
    tried.facts = dataclasses.replace(tried.facts, remedied={**tried.facts.remedied, name: parted})


def _append(
    tried: Tried, name: str, cause: str, outcome: str, runs: int, *, next_origin: str = "", note: str = "",
    with_: tuple[str, ...] = (),
) -> None:  # fmt: skip
    text = SWITCHES[name].code + (f" (together with {', '.join(with_)})" if with_ else "")
    tried.remedies.append(
        Remedy(name=name, text=text, outcome=outcome, runs=runs, next_origin=next_origin, note=note, cause=cause)
    )


def _handed_at(facts: Facts) -> str:
    """Where memory that changed was handed to torch: that line can copy it."""
    origin = facts.origin
    first = next((e for e in origin.chain if e.brings_data), None) if origin is not None else None
    if origin is None or first is None or facts.how != CHANGED_BEHIND or first.where in ("", origin.a.where):
        return ""
    return f"; it was handed over at {first.where}"


def _without_the_clock(facts: Facts) -> str:
    """What to write where the program's own reading of a clock decides; "" where a library chooses by measuring."""
    lead = facts.lead("clock") if facts.remedied.get("fixed-clock") is False else None
    if lead is None:
        return ""
    return f"let steps decide, and not the time that is read at {lead.a.where}; it decides here: {{where}}"


def _where_sets_are_walked(facts: Facts, cause: str) -> str:
    """The place that the advice names, and before it where sets are walked through, if their order is the cause."""
    if cause not in OF_SETS or not facts.set_walks or facts.lead("hash", "identity", near=1) is not None:
        return "{where}"
    return f"a set is walked through at {' and '.join(facts.set_walks[:MOST_WALKS])}; it shows first at {{where}}"


MOST_LACKING = 5


def _lacking(facts: Facts) -> str:
    """The state that parted: of a resumed run all that its first step reads parted, as far as it is told."""
    read = [leaf.leaf for leaf in facts.steps.parted if leaf.kind in READ]
    if not facts.resumed or facts.steps.leaf not in read:
        return facts.steps.leaf
    names = [facts.steps.leaf, *(name for name in read if name != facts.steps.leaf)]
    more = len(names) - MOST_LACKING
    return ", ".join(names[:MOST_LACKING]) + (f" and {more} more" if more > 0 else "")


def code_changes(tried: Tried) -> None:
    """What to write, for the causes in question: a switch is no mended code."""
    judged = judge(tried.facts)
    for cause in judged[:1]:
        kind = BY_NAME.get(cause.name)
        if kind is not None and kind.change:
            change = kind.change if tried.facts.cuda else kind.change_on_cpu or kind.change
            change = change.replace("{leaf}", _lacking(tried.facts)) + _handed_at(tried.facts)
            change = change.replace("{where}", _where_sets_are_walked(tried.facts, cause.name))
            change = (_without_the_clock(tried.facts) if cause.name == "autotune" else "") or change
            tried.remedies.append(Remedy(name="code", text=change, cause=cause.name, note="a change of the code"))

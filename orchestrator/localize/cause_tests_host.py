"""Observations about orders, clocks, machines and memory that somebody else wrote: small functions over Facts."""

from __future__ import annotations

import re
from collections.abc import Callable

from foxrun.tracing.words import PAST
from orchestrator.localize.beyond import is_past
from orchestrator.localize.cause_tests import draws_alone, test
from orchestrator.localize.causes import DECISIVE, PLAIN, PROBES, STRONG, WEAK, Evidence, Test
from orchestrator.localize.facts import Facts, Lead, machines_differ
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, HOST_VALUE, OUTPUTS_DIFFER, REORDERED
from orchestrator.localize.trace import Event


def changed(weight: int, when: Callable[[Facts], bool], what: str) -> Test:
    """Memory changed behind the trace, and something more."""

    def look(facts: Facts) -> Evidence | None:
        origin = facts.origin
        if origin is None or origin.how != CHANGED_BEHIND or origin.label.startswith("generator") or not when(facts):
            return None
        if is_past(origin.a):
            return None  # it is known who wrote it
        return Evidence(text=f"its memory changed behind the operations that were seen; {what}", weight=weight)

    look.__doc__ = f"did memory change behind the operations that were seen; {what}?"
    return look


@test(STRONG)
def made_by_threads(facts: Facts) -> str | None:
    """are equal tensors of several threads handed over in another order?"""
    chain = facts.origin.chain if facts.origin is not None and facts.how == REORDERED else []
    threads = sorted({event.thread for event in chain} - {facts.origin.a.thread if facts.origin is not None else 0})
    if not threads:
        return None
    return f"what is handed over was made by thread {' and '.join(map(str, threads))}: which comes first is a race"


def machine_read(facts: Facts) -> Evidence | None:
    """does the program choose by what it read of the machine?"""
    lead = facts.lead("machine")
    if lead is None or facts.how not in (CONTROL_FLOW, REORDERED, HOST_VALUE):
        return None
    text = f"{lead.text}: what the machine has free decides which operations run"
    return Evidence(text=text, weight=STRONG if lead.near else WEAK)


@test(WEAK)
def unexplained_value(facts: Facts) -> str | None:
    """does Python hand over other data, with nothing from outside that explains it?"""
    if any(parted is False and name not in ("fixed-addresses", *PROBES) for name, parted in facts.remedied.items()):
        return None  # what was switched on explains it
    if facts.how == HOST_VALUE and not any(lead.near for lead in facts.leads):
        return "what Python hands to torch differs, and nothing that it took from outside explains it (numpy.empty?)"
    return None


def writer_copies_unblocked(facts: Facts) -> bool:
    """The last seen writer is a copy that does not wait."""
    chain = facts.origin.chain if facts.origin is not None else []
    return any(does_not_wait(e) for e in chain)


def does_not_wait(e: Event) -> bool:
    """Whether an event is a copy that does not wait."""
    return e.short in ("copy_", "_to_copy", "to") and ("True" in e.shapes or "non_blocking" in e.shapes)


@test(STRONG)
def copies_unblocked(facts: Facts) -> str | None:
    """is it a copy that does not wait?"""
    if facts.origin is None or facts.how != OUTPUTS_DIFFER or not does_not_wait(facts.origin.a):
        return None
    return f"{facts.origin.a.name} does not wait (non_blocking), and gave other values though its source agreed"


def writer_shares(facts: Facts) -> bool:
    """The memory is numpy's, a buffer's or another process's as well."""
    chain = facts.origin.chain if facts.origin is not None else []
    return any(
        e.short in ("from_numpy", "frombuffer", "from_file", "as_strided", "set_", "detach", "alias", "lift_fresh")
        for e in chain
    )


def how_is(*ways: str, weight: int = PLAIN, what: str) -> Test:
    """How the origin shows."""

    def look(facts: Facts) -> Evidence | None:
        if facts.origin is None or facts.how not in ways:
            return None
        return Evidence(text=f"{what}: {facts.origin.detail}", weight=weight)

    look.__doc__ = f"{what}?"
    return look


def led_by(
    kind: str, *, weight: int = STRONG, reordered: bool = False, near: int = 0, ways: tuple[str, ...] = ()
) -> Test:
    """A host event before the origin."""

    def look(facts: Facts) -> Evidence | None:
        lead = next(
            (x for x in facts.leads if x.kind == kind and x.near >= near and (x.reordered or not reordered)), None
        )
        if lead is None or (ways and facts.how not in ways and facts.origin is not None and not facts.origin.outside):
            return None
        return Evidence(text=lead.text, weight=weight)

    look.__doc__ = f"did a host event of the kind {kind} differ before?"
    return look


def only_led_by(*kinds: str) -> Test:
    """Where no step and no operation is seen, what the program took from outside is all that there is."""

    def look(facts: Facts) -> Evidence | None:
        lead = next((x for x in facts.leads if x.kind in kinds), None) if facts.origin is None else None
        return (
            None if lead is None else Evidence(text=f"{lead.text}; of what was seen, little else differs", weight=PLAIN)
        )

    look.__doc__ = f"is a host value of {' or '.join(kinds)} among the few that differ, and nothing else seen?"
    return look


@test(WEAK)
def in_the_optimizer(facts: Facts) -> str | None:
    """is it in the optimizer?"""
    origin = facts.origin
    if origin is None or origin.a.phase != "optimizer" or facts.how not in (REORDERED, CONTROL_FLOW):
        return None
    if facts.how == CONTROL_FLOW and origin.a.name == origin.b.name and _tensors(origin.a) == _tensors(origin.b):
        return None  # the same on the same shapes, with another number: a learning rate, a step
    return "it is the optimizer that walks through its parameters in another order"


def _tensors(event: Event) -> list[str]:
    return re.findall(r"[a-z]+\d*\[[^\]]*\]", event.shapes)


@test(PLAIN)
def by_itself_reordered(facts: Facts) -> str | None:
    """do twins that differ in nothing part by an order?"""
    if facts.how in (REORDERED, CONTROL_FLOW) and facts.narrowed.get("nothing"):
        return "twins that differ in nothing that can be set part by this order: addresses or timing decide it"
    return None


def timed_before(facts: Facts) -> Evidence | None:
    """was a clock for measuring read before the control flow parted?"""
    lead = _clock_before(facts)
    if lead is None:
        return None
    text = f"the program measures time before it chooses: {lead.a.name} at {lead.a.where}"
    if draws_alone(facts) is not None:
        return Evidence(text=text, weight=WEAK)  # it decides whether to draw, and chooses among no ways to compute
    return Evidence(text=text, weight=STRONG if lead.near >= 2 else PLAIN)


@test(STRONG)
def hands_on_a_duration(facts: Facts) -> str | None:
    """does the line measure how long something takes, and hand that on?"""
    lead = facts.stopwatch if facts.how == HOST_VALUE else None
    return (
        f"{lead.a.name} is read before and after at {lead.a.where}, which hands on how long it took" if lead else None
    )


def _clock_before(facts: Facts) -> Lead | None:
    return facts.lead("clock", near=1) if facts.how == CONTROL_FLOW else None


def clock_chooses(facts: Facts) -> Evidence | None:
    """do the twins run the same when the clock that they measure by is fixed?"""
    if _clock_before(facts) is None or facts.remedied.get("fixed-clock") is not False:
        return None
    text = "the twins agree when the clock that the program measures by is fixed"
    return Evidence(text=text, weight=DECISIVE if draws_alone(facts) is None else WEAK)


def python_decides(facts: Facts) -> Evidence | None:
    """does what Python decides differ?"""
    if facts.origin is None or facts.how not in (CONTROL_FLOW, HOST_VALUE):
        return None
    return Evidence(text=f"what Python decides differs: {facts.origin.detail}", weight=WEAK)


def writes_past(facts: Facts) -> Evidence | None:
    """did native code write past the memory that it was given?"""
    if facts.origin is None or not is_past(facts.origin.a):
        return None
    text = f"{facts.origin.a.name} at {facts.origin.a.where or '?'} {facts.origin.a.value}"
    return Evidence(text=text, weight=DECISIVE if facts.origin.a.value.startswith(PAST) else STRONG)


@test(WEAK)
def walks_a_set(facts: Facts) -> str | None:
    """does a file near the origin walk through a set?"""
    if not facts.set_walks or facts.how not in (REORDERED, CONTROL_FLOW, HOST_VALUE):
        return None
    return f"a set is walked through at {facts.set_walks[0]}"


@test(STRONG)
def crashes(facts: Facts) -> str | None:
    """does a twin crash whose memory lies elsewhere?"""
    return facts.crashed or None


@test(DECISIVE)
def other_machine(facts: Facts) -> str | None:
    """did the twins run on different hardware or versions?"""
    return machines_differ(facts.header, facts.other_header) or None


@test(STRONG)
def other_environment(facts: Facts) -> str | None:
    """do two commands of one program differ by what it reads of its environment?"""
    if not facts.two_commands or facts.resumed or facts.how not in (CONTROL_FLOW, HOST_VALUE, OUTPUTS_DIFFER):
        return None
    if facts.environments:
        return f"the two runs were given other environments: {facts.environments}"
    lead = next((x for x in facts.leads if x.a.name.startswith("os.environ") and x.near), None)
    return f"{lead.text}: the two runs were given other environments" if lead is not None else None


@test(STRONG)
def graph_replayed(facts: Facts) -> str | None:
    """is it a captured graph that draws?"""
    name = facts.origin.a.name if facts.origin is not None else ""
    if "graph" in name.lower() and not name.startswith("inductor."):  # which captures no state
        return f"{name} replays what was captured, with the state of then"
    return None


@test(WEAK)
def several_threads(facts: Facts) -> str | None:
    """do several threads of the program run operations?"""
    if facts.threads > 1 and facts.how in (REORDERED, CONTROL_FLOW, CHANGED_BEHIND):
        return f"{facts.threads} threads of the program run operations"
    return None


def hash_does_not_matter(facts: Facts) -> Evidence | None:
    """does the order differ with hash() fixed?"""
    if facts.how not in (REORDERED, CONTROL_FLOW) or not facts.remedied.get("hash-seed") or facts.origin is None:
        return None
    if facts.how == CONTROL_FLOW and facts.origin.a.name == facts.origin.b.name:
        return None  # the same operation of another size: no order makes it so
    # That other operations run is no order yet: something that was read or measured may explain it.
    weight = PLAIN if facts.how == REORDERED else WEAK
    return Evidence(text="the order differs with hash() of strings fixed", weight=weight)


# They make equal what a program draws or reads, and leave its objects where they lie.
_VALUES = ("seed-generators", "workers-seeded", "fixed-entropy", "fixed-clock", "sorted-listings")


@test(-STRONG)
def values_matter(facts: Facts) -> str | None:
    """do the twins agree with a switch that decides values and no addresses?"""
    name = next((name for name in _VALUES if facts.remedied.get(name) is False), None)
    return f"with {name} the twins agree, and it does not decide where objects lie" if name is not None else None


@test(DECISIVE)
def addresses_decide(facts: Facts) -> str | None:
    """do the twins agree where memory lies at the same addresses, and not with hash() of strings fixed alone?"""
    if facts.remedied.get("fixed-addresses") is not False or facts.remedied.get("filled-memory") is False:
        return None
    return "the twins agree where memory lies at the same addresses in both; fixing hash() of strings was not enough"


@test(STRONG)
def address_read(facts: Facts) -> str | None:
    """does the program choose by where memory lies?"""
    lead = facts.lead("address", near=1)
    if lead is None or facts.how not in (CONTROL_FLOW, HOST_VALUE, REORDERED):
        return None
    return f"{lead.a.name} at {lead.a.where} gave another address in each twin, and then they do something else"


@test(-STRONG)
def hash_matters(facts: Facts) -> str | None:
    """does fixing hash() make the twins agree?"""
    return "fixing hash() of strings makes the twins agree" if facts.remedied.get("hash-seed") is False else None


def on_cuda(facts: Facts) -> bool:
    """The program computes on a GPU."""
    return facts.cuda


def with_threads(facts: Facts) -> bool:
    """Several threads run operations, or the program has children that may share memory."""
    return facts.threads > 1 or facts.children > 0


def always(facts: Facts) -> bool:
    """Whenever memory changed behind."""
    return True


def single_thread_host(facts: Facts) -> bool:
    """On a CPU, with one thread of operations and no children."""
    return not facts.cuda and facts.threads <= 1 and not facts.children and not writer_shares(facts)


def handed_over(facts: Facts) -> bool:
    """It is memory of Python's (numpy, a buffer) that torch reads: no operation of torch writes it."""
    return any(event.brings_data for event in (facts.origin.chain if facts.origin is not None else []))

"""Observations about seeds, draws, orders, workers and memory that somebody else wrote: small functions over Facts."""

from __future__ import annotations

import re
from collections.abc import Callable

from orchestrator.localize.beyond import PAST, is_past
from orchestrator.localize.cause_tests import test
from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Evidence, Test
from orchestrator.localize.facts import Facts, Lead, machines_differ
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, HOST_VALUE, OUTPUTS_DIFFER, REORDERED, SEED
from orchestrator.localize.trace import Event

REPLAY_WORDS = re.compile(r"replay|rollout_?buffer|experience|transition")


def origin_is_draw_or_seed(facts: Facts) -> bool:
    """Whether randomness itself is where the twins part."""
    return facts.kind in ("draw", "seed") or facts.how == SEED


@test(DECISIVE)
def seeded_by_nobody(facts: Facts) -> str | None:
    """is a generator in another state before anybody seeded it?"""
    origin = facts.origin
    if origin is None or facts.in_child:
        return None
    if origin.how == SEED and origin.outside:
        return f"{origin.label or 'its generator'} is in another state in each process, and no seeding was seen before"
    if origin.a.kind == "seed" and _without_seed(origin.a.value, origin.a.name):
        return f"{origin.a.name} was called without a seed"
    return None


@test(STRONG)
def entropy_as_data(facts: Facts) -> str | None:
    """does what Python hands to torch come from the operating system's entropy?"""
    lead = facts.lead("entropy", near=2)
    return f"{lead.text}, and it is used as data" if lead is not None and facts.how == HOST_VALUE else None


def _without_seed(value: str, name: str) -> bool:
    return (
        value.strip() in ("", "None", "()", "(None,)", "no seed")
        or name.endswith(".seed()")
        or (name.rpartition(".")[2] == "seed" and name.startswith("torch"))
    )


@test(STRONG)
def seeded_by_entropy(facts: Facts) -> str | None:
    """does a seed come from the operating system's entropy?"""
    lead = facts.lead("entropy", near=2)
    if facts.lead("clock", "process", near=2) is not None:
        return None  # numpy asks for entropy before it takes the seed that it is given
    return lead.text if origin_is_draw_or_seed(facts) and lead is not None else None


@test(-STRONG)
def clock_in_the_seed(facts: Facts) -> str | None:
    """is the seed the clock's?"""
    lead = facts.lead("clock", "process", near=3)
    if lead is not None and facts.kind == "seed":
        return f"the seed is a value of {lead.a.name}"
    beside = facts.lead("clock", "process", near=2)
    if beside is not None and facts.origin is not None and facts.origin.outside and facts.how == SEED:
        return f"{beside.a.name} is asked just before, where the generator may be made"
    return None


@test(DECISIVE)
def seed_is_the_time(facts: Facts) -> str | None:
    """is the seed a value that the clock or the process gave?"""
    lead = facts.lead("clock", "process", near=3)
    return f"{lead.text}, which is the seed" if lead is not None and facts.kind in ("seed", "draw") else None


@test(STRONG)
def seed_beside_the_time(facts: Facts) -> str | None:
    """is the clock or the process asked on the line that seeds?"""
    lead = facts.lead("clock", "process", near=2)
    if lead is None or lead.near != 2 or not (facts.kind == "seed" or facts.how in (SEED, HOST_VALUE)):
        return None
    return f"{lead.text}, on the line that seeds"


@test(PLAIN)
def seed_near_the_time(facts: Facts) -> str | None:
    """is the clock or the process asked in the file that seeds?"""
    lead = facts.lead("clock", "process", near=1)
    explicit = (
        facts.origin is not None
        and facts.kind == "seed"
        and not _without_seed(facts.origin.a.value, facts.origin.a.name)
    )
    return f"{lead.text}, before the seed" if lead is not None and lead.near == 1 and explicit else None


@test(STRONG)
def moved_by_others(facts: Facts) -> str | None:
    """did a seeded generator move by draws of others?"""
    origin = facts.origin
    if origin is not None and origin.how == CHANGED_BEHIND and origin.label.startswith("generator"):
        return origin.detail
    return None


@test(STRONG)
def extra_draws(facts: Facts) -> str | None:
    """does one twin draw where the other does not?"""
    origin = facts.origin
    if origin is None or origin.how != CONTROL_FLOW or not {origin.a.kind, origin.b.kind} & {"draw"}:
        return None
    if (origin.a.name, origin.a.where) == (origin.b.name, origin.b.where):
        return None  # both draw here, of another size
    return f"one twin draws from a shared generator where the other does not: {origin.detail}"


@test(STRONG)
def in_a_worker(facts: Facts) -> str | None:
    """does a worker process part?"""
    if facts.in_child and facts.origin is not None and (origin_is_draw_or_seed(facts) or facts.how == HOST_VALUE):
        return f"process {facts.origin.process}, a worker of the program, parts by itself at {facts.origin.a.name}"
    return None


@test(PLAIN)
def from_a_worker(facts: Facts) -> str | None:
    """does what parts come from worker processes?"""
    if facts.children and facts.steps.component == "data" and facts.origin is not None and facts.origin.outside:
        return f"what parts came from outside the main process, which has {facts.children} workers"
    return None


@test(DECISIVE)
def resumed_parts(facts: Facts) -> str | None:
    """is the second twin a resumed run?"""
    if not facts.resumed:
        return None
    leaf = f"{facts.steps.leaf} ({facts.steps.kind})"
    return f"the second twin resumes, and the first row that parts shows {leaf} not restored"


def changed(weight: int, when: Callable[[Facts], bool], what: str) -> Test:
    """Memory changed behind the trace, and something more."""

    def look(facts: Facts) -> Evidence | None:
        origin = facts.origin
        if origin is None or origin.how != CHANGED_BEHIND or origin.label.startswith("generator") or not when(facts):
            return None
        if is_past(origin.a):
            return None  # it is known who wrote it
        return Evidence(text=f"{origin.detail}; {what}", weight=weight)

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
    if facts.how == HOST_VALUE and not any(lead.near for lead in facts.leads):
        return "what Python hands to torch differs, and nothing that it took from outside explains it (numpy.empty?)"
    return None


RESUMES = re.compile(r"load_state_dict|torch\.load|set_rng_state|setstate|set_state|restore|resum|checkpoint|preempt")


@test(STRONG)
def resumes_in_one(facts: Facts) -> str | None:
    """does one twin load a saved state where the other goes on?"""
    if facts.how != CONTROL_FLOW:
        return None
    line = next((line for line in facts.lines if RESUMES.search(line)), None)
    return f"one twin goes through a resume where the other does not: {line}" if line else None


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


@test(STRONG)
def replay_named(facts: Facts) -> str | None:
    """does the origin belong to a replay buffer's sampling?"""
    found = REPLAY_WORDS.search(facts.place)
    if found and (origin_is_draw_or_seed(facts) or facts.how in (REORDERED, HOST_VALUE, CONTROL_FLOW)):
        return f"the origin belongs to the replay ({found[0]}): what is sampled decides all that follows"
    return None


@test(STRONG)
def replay_draws(facts: Facts) -> str | None:
    """is the replay's origin a draw?"""
    if REPLAY_WORDS.search(facts.place) and origin_is_draw_or_seed(facts):
        return "it is a random draw, or the seed of one"
    return None


def timed_before(facts: Facts) -> Evidence | None:
    """was a clock for measuring read before the control flow parted?"""
    lead = _clock_before(facts)
    if lead is None:
        return None
    text = f"the program measures time before it chooses: {lead.a.name} at {lead.a.where}"
    return Evidence(text=text, weight=STRONG if lead.near >= 2 else PLAIN)


def _clock_before(facts: Facts) -> Lead | None:
    return facts.lead("clock", near=1) if facts.how == CONTROL_FLOW else None


@test(DECISIVE)
def clock_chooses(facts: Facts) -> str | None:
    """do the twins run the same when the clock that they measure by is fixed?"""
    if _clock_before(facts) is None or facts.remedied.get("fixed-clock") is not False:
        return None
    return "the twins agree when the clock that the program measures by is fixed"


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
    lead = next((x for x in facts.leads if x.a.name.startswith("os.environ") and x.near), None)
    return f"{lead.text}: the two runs were given other environments" if lead is not None else None


@test(STRONG)
def graph_replayed(facts: Facts) -> str | None:
    """is it a captured graph that draws?"""
    if facts.origin is not None and re.search(r"graph", facts.origin.a.name, re.IGNORECASE):
        return f"{facts.origin.a.name} replays what was captured, with the state of then"
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


@test(STRONG)
def address_read(facts: Facts) -> str | None:
    """does the program choose by where memory lies?"""
    lead = facts.lead("address", near=1)
    if lead is None or facts.how not in (CONTROL_FLOW, HOST_VALUE):
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

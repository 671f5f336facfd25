"""Observations about races: twins that differ in nothing but in which of the program's threads wait."""

from __future__ import annotations

from foxrun.tracing.words import QUEUED, STILL_WRITTEN
from orchestrator.localize.beyond import is_past
from orchestrator.localize.cause_tests import draws_alone, remedied, test
from orchestrator.localize.cause_tests_host import does_not_wait
from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Evidence, Test
from orchestrator.localize.facts import Facts
from orchestrator.localize.result import (
    CHANGED_BEHIND,
    CONTROL_FLOW,
    DELAYS,
    HOST_VALUE,
    OUTPUTS_DIFFER,
    PACE,
    REORDERED,
)
from orchestrator.localize.trace import Event


def is_a_race(facts: Facts) -> bool:
    """Whether twins part that differ in delays alone."""
    return bool(facts.narrowed.get(DELAYS))


def raced(*ways: str, weight: int = DECISIVE) -> Test:
    """A race whose origin shows in one of these ways."""

    def look(facts: Facts) -> Evidence | None:
        if not is_a_race(facts) or facts.origin is None or facts.how not in ways:
            return None
        if facts.origin.label.startswith("generator") or is_past(facts.origin.a):
            return None  # a draw has evidence of its own, and so has a write past its memory
        return Evidence(text=f"twins that differ only in which {facts.waits} wait part", weight=weight)

    look.__doc__ = f"do twins part that differ in delays alone, and is the origin: {', '.join(ways)}?"
    return look


@test(DECISIVE)
def raced_draws(facts: Facts) -> str | None:
    """do twins part that differ in delays alone, by a generator that moved?"""
    if not is_a_race(facts) or facts.origin is None or not facts.origin.label.startswith("generator"):
        return None
    return f"twins that differ only in which {facts.waits} wait part: {facts.origin.detail}"


@test(-STRONG)
def timing_decides(facts: Facts) -> str | None:
    """do twins part that differ in delays alone?"""
    if not is_a_race(facts) or (facts.origin is not None and is_past(facts.origin.a)):
        return None  # what lies behind the memory that a write leaves may be a race's doing
    return f"twins with one hash seed that differ only in which {facts.waits} wait part"


@test(-STRONG)
def timing_matters_not(facts: Facts) -> str | None:
    """do twins agree that differ in delays alone?"""
    if facts.narrowed.get(DELAYS) is False:
        return f"twins in which one or another of the {facts.waits} waits agree"
    return None


def measured_time_decides(facts: Facts) -> Evidence | None:
    """do twins part that differ only in how long things seem to take?"""
    if not facts.narrowed.get(PACE):
        return None
    weight = DECISIVE if draws_alone(facts) is None else WEAK  # a draw that time decides about is no choice of a way
    return Evidence(text="twins that differ only in how long things seem to take part", weight=weight)


@test(STRONG)
def narrows_in_one_thread(facts: Facts) -> str | None:
    """does it depend on the thread whether it computes in 16 bits?"""
    if not is_a_race(facts) or facts.origin is None or facts.how != CONTROL_FLOW:
        return None
    narrow = [any(word in e.shapes for word in ("bf16", "f16[", "bfloat16", "float16")) for e in _both(facts)]
    if narrow[0] == narrow[1] or facts.origin.a.thread == facts.origin.b.thread:
        return None
    return f"thread {facts.origin.a.thread} and thread {facts.origin.b.thread} compute it, one of them in 16 bits"


@test(STRONG)
def changes_while_held(facts: Facts) -> str | None:
    """does memory that was handed over whole change while a late reader holds it?"""
    if not is_a_race(facts) or facts.how != CHANGED_BEHIND or facts.origin is None or facts.origin.reader is None:
        return None
    if is_past(facts.origin.a):
        return None
    where = facts.origin.reader.where or "an unknown line"
    return f"its owner writes it again before {facts.origin.reader.name} at {where} reads it, if that is late"


@test(PLAIN)
def weight_changes(facts: Facts) -> str | None:
    """is it a weight, a moment or a buffer that changes under its reader?"""
    if not is_a_race(facts) or facts.how != CHANGED_BEHIND or facts.steps.kind not in ("weight", "moment", "buffer"):
        return None
    return f"{facts.steps.leaf} is no copy of anything: somebody else has its memory too"


@test(-DECISIVE)
def seeds_are_the_cure(facts: Facts) -> str | None:
    """do twins that differ in delays agree once generators have fixed seeds?"""
    name = next((n for n in ("workers-seeded", "seed-generators") if facts.remedied.get(n) is False), None)
    return f"with {name} twins agree that differ in who waits: it is no race" if name and is_a_race(facts) else None


COPIES = ("copy_", "_foreach_copy_", "fill_", "set_", "index_copy_", "zero_", "random_", "normal_", "uniform_")


def _writer(facts: Facts) -> Event | None:
    """The operation of another thread that wrote what the origin reads."""
    if not is_a_race(facts) or facts.how != CHANGED_BEHIND or facts.origin is None:
        return None
    return next((e for e in facts.origin.chain if e.thread != facts.origin.a.thread and not e.brings_data), None)


@test(PLAIN)
def owner_goes_on(facts: Facts) -> str | None:
    """does another thread go on computing in memory that it shares?"""
    writer = _writer(facts)
    if writer is None or writer.short in COPIES:
        return None
    return f"thread {writer.thread} goes on computing in it ({writer.name} at {writer.where or '?'})"


@test(PLAIN)
def another_copies(facts: Facts) -> str | None:
    """does another thread copy into memory that is read?"""
    writer = _writer(facts)
    if writer is None or writer.short not in COPIES:
        return None
    return f"thread {writer.thread} copies into it ({writer.name} at {writer.where or '?'})"


def _changes_under_it(facts: Facts) -> str:
    """Equal inputs, other outputs, and yet alone, on its own inputs, always the same: they changed while it ran."""
    r = facts.replay
    if facts.origin is None or facts.how != OUTPUTS_DIFFER or facts.origin.outside or facts.origin.unset:
        return ""
    if r is None or r.runs < 10 or r.parted or any("parted" in text for text in r.varied.values()):
        return ""
    if facts.threads < 2 and not facts.children and not any(e.brings_data for e in facts.origin.chain):
        return ""
    return f"replayed alone {facts.origin.a.name} gives equal bits in {r.runs} runs: what it reads changed meanwhile"


@test(STRONG)
def changes_meanwhile(facts: Facts) -> str | None:
    """does what an operation reads change while it runs?"""
    return _changes_under_it(facts) or None


@test(STRONG)
def changes_meanwhile_and_is_shared(facts: Facts) -> str | None:
    """does memory that Python shares change while an operation reads it?"""
    text = _changes_under_it(facts)
    chain = facts.origin.chain if facts.origin is not None else []
    return f"{text}, and Python holds that memory too" if text and any(e.brings_data for e in chain) else None


@test(DECISIVE)
def written_while_queued(facts: Facts) -> str | None:
    """is it an array that waits in a queue of multiprocessing's, and is written before it is pickled?"""
    if facts.origin is None or facts.origin.a.name != QUEUED or facts.how != CHANGED_BEHIND:
        return None
    return "the queue keeps the array itself until its thread pickles it, and somebody fills it again before"


def reads_what_is_written(facts: Facts) -> Evidence | None:
    """is a file read near the origin, with other bytes in each twin, while the program has it open for writing?"""
    lead = next((x for x in facts.leads if x.a.name == "open" and _still_written(x.a, x.b) and x.near), None)
    if lead is None or facts.how not in (HOST_VALUE, CONTROL_FLOW, REORDERED):
        return None
    name = lead.a.value.partition(",")[0]
    text = f"{name} has other bytes in each twin when it is read at {lead.a.where or '?'}, {STILL_WRITTEN}"
    return Evidence(text=text, weight=DECISIVE)


def _still_written(*events: Event) -> bool:
    return any(STILL_WRITTEN in event.value for event in events)


@test(STRONG)
def reads_early(facts: Facts) -> str | None:
    """was an input last written by a copy that does not wait?"""
    if facts.origin is None or facts.how != OUTPUTS_DIFFER or facts.origin.outside:
        return None
    copy = next((e for e in facts.origin.chain if does_not_wait(e)), None)
    if copy is None:
        return None
    return f"what it reads was written by {copy.name} at {copy.where or '?'}, which does not wait"


_remedied = remedied("synchronous-copies", DECISIVE)


def copies_waited_for(facts: Facts) -> Evidence | None:
    """does synchronous-copies alone make the twins agree?"""
    return _remedied(facts) if facts.cuda else None  # on a CPU no copy of torch's is on its way


def _both(facts: Facts) -> tuple[Event, Event]:
    assert facts.origin is not None
    return facts.origin.a, facts.origin.b


ORDERS = (REORDERED, CONTROL_FLOW, HOST_VALUE)
completes = raced(*ORDERS, weight=STRONG)
written = raced(CHANGED_BEHIND)

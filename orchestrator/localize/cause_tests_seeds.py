"""Observations about seeds, draws, workers, resumes and the replay: small functions over Facts."""

from __future__ import annotations

import re

from orchestrator.localize.cause_tests import draws_alone, test
from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Evidence
from orchestrator.localize.facts import Facts
from orchestrator.localize.result import (
    CHANGED_BEHIND,
    CONTROL_FLOW,
    DELAYS,
    DRAWN_MEANWHILE,
    HOST_VALUE,
    PACE,
    REORDERED,
    SEED,
)

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


@test(WEAK)
def entropy_decides(facts: Facts) -> str | None:
    """does the program take entropy, and decide something else afterwards?"""
    lead = facts.lead("entropy")
    return lead.text if lead is not None and facts.how in (HOST_VALUE, CONTROL_FLOW, REORDERED) else None


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
    if facts.how == HOST_VALUE and facts.stopwatch is not None:
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


@test(PLAIN)
def drawn_meanwhile(facts: Facts) -> str | None:
    """does a generator move while one draws from it?"""
    return facts.origin.detail if facts.origin is not None and facts.origin.detail == DRAWN_MEANWHILE else None


@test(DECISIVE)
def draws_as_timing_has_it(facts: Facts) -> str | None:
    """do twins part that differ in delays or in measured time alone, by a draw that one of them makes?"""
    timed = any(facts.narrowed.get(kind) for kind in (DELAYS, PACE)) or facts.remedied.get("fixed-clock") is False
    draw = draws_alone(facts) if timed else None
    return f"timing decides whether {draw.name} at {draw.where or '?'} draws" if draw is not None else None


@test(STRONG)
def extra_draws(facts: Facts) -> str | None:
    """does one twin draw where the other does not?"""
    origin = facts.origin
    if origin is None or not {origin.a.kind, origin.b.kind} & {"draw"}:
        return None
    same = (origin.a.name, origin.a.where) == (origin.b.name, origin.b.where)  # both draw here, of another size
    if origin.how not in (CONTROL_FLOW, REORDERED) or same:
        return None
    if origin.how == REORDERED and facts.threads <= 1:
        return None  # both make the same draws, and no other thread's turn decides which comes first
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


def resumed_parts(facts: Facts) -> Evidence | None:
    """is the second twin a resumed run?"""
    if not facts.resumed:
        return None
    leaf = f"{facts.steps.leaf} ({facts.steps.kind})"
    text = f"the second twin resumes, and the first row that parts shows {leaf} not restored"
    # From step 0 on a resumed run may as well be counted wrongly.
    return Evidence(text=text, weight=DECISIVE if facts.steps.step else STRONG)


RESUMES = re.compile(r"load_state_dict|torch\.load|set_rng_state|setstate|set_state|restore|resum|checkpoint|preempt")


@test(STRONG)
def resumes_in_one(facts: Facts) -> str | None:
    """does one twin load a saved state where the other goes on?"""
    if facts.how != CONTROL_FLOW:
        return None
    line = next((line for line in facts.lines if RESUMES.search(line)), None)
    return f"one twin goes through a resume where the other does not: {line}" if line else None


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

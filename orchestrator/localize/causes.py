"""Candidates for the cause, each with evidence for and against, and the confidence by rule. Pure.

The table is cause_table.py; docs/causes.md is made of it. A test of a cause looks at Facts and gives evidence or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.localize.facts import Facts
from orchestrator.localize.result import Cause

# How much an observation says. One that was made by an experiment, with and without, decides.
WEAK, PLAIN, STRONG, DECISIVE = 1, 2, 4, 6
CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"
RULE = (
    "certain: an experiment speaks for it (the twins agree with its remedy, or part when they differ in it alone) or "
    "the trace shows it directly, and nothing measured speaks against it; likely: strong evidence, and none against it "
    "that weighs as much; possible: the rest. First stands the candidate with the most evidence for it, what speaks "
    "against it subtracted; the others follow by confidence."
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One observation, for (a positive weight) or against."""

    text: str
    weight: int


Test = Callable[[Facts], Evidence | None]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of cause. ``remedies``: names of switches, in the order in which they are tried; ``change``: what to write
    in the code, where {where} is the line and {name} the operation."""

    name: str
    title: str
    what: str
    tests: tuple[Test, ...]
    remedies: tuple[str, ...] = ()
    change: str = ""
    change_on_cpu: str = ""  # where it is another one than on a GPU
    reports: tuple[str, ...] = ()


def judge(facts: Facts, kinds: tuple[Kind, ...] | None = None) -> list[Cause]:
    """All candidates with any evidence for them, the best first; ``unknown`` when there is none."""
    from orchestrator.localize.cause_table import KINDS

    ranked = []
    for place, kind in enumerate(kinds or KINDS):
        found = [evidence for test in kind.tests if (evidence := test(facts)) is not None]
        if any(item.weight > 0 for item in found):  # a switch that several causes share speaks for none by itself
            said = " ".join(item.text for item in found)
            found += [item for item in _measured(kind, facts) if item.text.split()[1] not in said]
        pros = [item for item in found if item.weight > 0]
        cons = [item for item in found if item.weight < 0]
        if not pros:
            continue
        score = sum(item.weight for item in found)
        cause = Cause(
            name=kind.name,
            title=kind.title,
            confidence=_confidence(pros, cons),
            evidence=[item.text for item in sorted(pros, key=lambda e: -e.weight)],
            against=[item.text for item in sorted(cons, key=lambda e: e.weight)],
        )
        ranked.append((-score, place, cause))
    if not ranked:
        text = "no known cause fits what was seen"
        return [Cause(name="unknown", title="Unknown", confidence=POSSIBLE, evidence=[text])]
    first, *others = sorted(ranked, key=lambda item: item[:2])
    others.sort(key=lambda item: (CERTAIN, LIKELY, POSSIBLE).index(item[2].confidence))
    return [cause for _, _, cause in (first, *others)]


def _confidence(pros: list[Evidence], cons: list[Evidence]) -> str:
    best, worst = max(item.weight for item in pros), max((-item.weight for item in cons), default=0)
    if best >= DECISIVE and worst < STRONG:
        return CERTAIN
    if best >= STRONG and worst < best:
        return LIKELY
    return POSSIBLE


# They make equal what they do not cure, so that they prove nothing for a cause; and where objects lie depends on more
# than where memory begins, so that twins which part with fixed addresses prove nothing against one.
PROBES = ("filled-memory", "deterministic-algorithms", "fixed-addresses")


def _measured(kind: Kind, facts: Facts) -> list[Evidence]:
    """What this cause's remedies came to. Of several ways to rule it out one is enough: where one does, what the others
    leave speaks for nothing."""
    found = []
    measured = {name: facts.remedied.get(name) for name in kind.remedies if name not in PROBES}
    cured = False in measured.values()
    for remedy, parted in measured.items():
        if parted is None or (parted and cured):
            continue
        if parted:
            found.append(Evidence(text=f"with {remedy} the twins still part there", weight=-PLAIN))
        else:
            found.append(Evidence(text=f"with {remedy} the twins agree", weight=PLAIN))
    return found

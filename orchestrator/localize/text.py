"""The result as a person reads it on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from orchestrator.localize import raw
from orchestrator.localize.result import (
    HIDDEN,
    KINDS,
    NOT_ENOUGH,
    NOT_TRIED,
    VERIFIED,
    Localization,
    Operation,
    Remedy,
    Replay,
    Trial,
)
from orchestrator.printable import printable

WIDTH = 118
LEAVES_SHOWN = 8
LABEL = 11


def lines(result: Localization) -> list[str]:
    """Verdict first, then where, what, why, what to do, and what was not looked at."""
    out = [("found: " if result.found else "clean: ") + result.message]
    if result.found:
        out += ["", *_where(result)]
        if result.operation is not None:
            out += _operation(result.operation)
        for other in result.further:
            out += _pair("also", f"{other.name} at {other.where or '?'} ({other.how})")
        if result.replay is not None:
            out += _pair("replay", replay_text(result.replay))
        out += ["", *_causes(result)]
        out += ["", *_remedies(result)] if result.remedies else []
    if len(result.trials) > 1:
        out += ["", "trials"] + [f"  {trial_text(trial)}" for trial in result.trials]
        out += [f"      {line}" for line in kinds_of(result.trials)]
    out += ["", "raw dumps"] + [f"  {line}" for line in raw.lines(result.dumps)] if result.dumps else []
    out += ["", "not looked at"] + [f"  - {text}" for text in result.not_looked_at] if result.not_looked_at else []
    out += [f"note: {text}" for text in result.notes]
    out += ["", f"next: {result.next}"]
    out.append(f"{result.runs} pair{'s' if result.runs != 1 else ''} of twins, {result.seconds:.0f} s")
    return [printable(line) for line in out]


def _pair(label: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, WIDTH - LABEL) or [""]
    return [f"{label:<{LABEL}}{wrapped[0]}", *(" " * LABEL + line for line in wrapped[1:])]


def _where(result: Localization) -> list[str]:
    out = _pair("step", "-" if result.step is None else str(result.step))
    first = result.parted[0] if result.parted else None
    out += _pair("leaf", result.leaf + (f"   ({first.why})" if first is not None else ""))
    out += _pair("component", result.component)
    inherited = [leaf.leaf for leaf in result.parted if leaf.role != "origin"]
    if inherited:
        shown = ", ".join(inherited[:LEAVES_SHOWN])
        more = f" and {len(inherited) - LEAVES_SHOWN} more" if len(inherited) > LEAVES_SHOWN else ""
        out += _pair("inherited", shown + more)
    return out


def _operation(op: Operation) -> list[str]:
    place = f" at {op.where}" if op.where else ""
    out = _pair("operation", f"{op.name}{place}   [{op.how}]")
    if op.source:
        out.append(" " * LABEL + f"  > {op.source}")
    if op.detail:
        out += _pair("", op.detail)
    for lead in op.leads:
        if lead != op.detail:
            out += _pair("", f"before it: {lead}")
    where = [
        op.module and f"module {op.module}",
        op.phase and f"phase {op.phase}",
        op.process != "0" and f"process {op.process}",
    ]
    if any(where):
        out += _pair("", ", ".join(str(item) for item in where if item))
    return out


def replay_text(replay: Replay) -> str:
    """What the operation did alone."""
    if replay.note:
        return replay.note
    text = f"alone on its own inputs it differed in {replay.parted} of {replay.runs} runs of one process"
    if replay.parted:
        text += f", by up to {replay.max_ulp} ulp ({replay.max_abs:.3g})"
    return text + "".join(f"; {name}: {said}" for name, said in replay.varied.items())


def _causes(result: Localization) -> list[str]:
    out = []
    for number, cause in enumerate(result.causes[:3]):
        label = "cause" if number == 0 else "or"
        out += _pair(label, f"{cause.name} ({cause.confidence}): {cause.title}")
        out += [line for text in cause.evidence for line in _bullet("+", text)]
        out += [line for text in cause.against for line in _bullet("-", text)]
    return out


def _bullet(mark: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, WIDTH - LABEL - 2)
    return (
        [" " * LABEL + f"{mark} {wrapped[0]}", *(" " * (LABEL + 2) + line for line in wrapped[1:])] if wrapped else []
    )


def _remedies(result: Localization) -> list[str]:
    out = []
    for number, remedy in enumerate(result.remedies):
        out += _pair("remedy" if number == 0 else "", remedy_text(remedy))
    return out


def remedy_parts(remedy: Remedy) -> tuple[str, str]:
    """What became of a remedy, and what it is."""
    said = {
        VERIFIED: f"verified in {remedy.runs} run{'s' if remedy.runs != 1 else ''}",
        NOT_ENOUGH: f"not enough: {remedy.next_origin}" if remedy.next_origin else "not enough",
        HIDDEN: "hides it: the twins agree, and the fault stays",
        NOT_TRIED: "not tried" + (f": {remedy.note}" if remedy.note else ""),
    }[remedy.outcome]
    if remedy.outcome == NOT_ENOUGH and remedy.next_origin == "the same":
        said = "no effect: the twins part at the same place"
        if remedy.name == "fixed-addresses":
            said = "says nothing: the twins part at the same place, and objects may lie elsewhere all the same"
    if remedy.note and remedy.outcome == VERIFIED:
        said += f" ({remedy.note})"
    return said, remedy.text


def remedy_text(remedy: Remedy) -> str:
    """One remedy and what became of it."""
    said, text = remedy_parts(remedy)
    return f"in the code: {text}" if remedy.name == "code" else f"{remedy.name}: {said}. {text}"


def kinds_of(trials: Sequence[Trial]) -> list[str]:
    """What the kinds of these pairs mean, one line each."""
    return [f"{name}: twins that {KINDS[name]}" for name in dict.fromkeys(t.pair for t in trials) if name in KINDS]


def trial_text(trial: Trial) -> str:
    """One line of the table of trials."""
    if not trial.leaf:
        return f"{trial.number:>2}  {trial.pair:<8} {trial.note or 'agreed'}"
    step = "-" if trial.step is None else trial.step
    return f"{trial.number:>2}  {trial.pair:<8} step {step:<5} {trial.leaf:<32} {trial.operation}".rstrip()

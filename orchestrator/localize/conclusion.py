"""What the trials came to, as the result: the origin that most of them name, its component, the sentences."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence

from foxrun.tracing.words import PAST, PAST_VIEW
from orchestrator.localize import source
from orchestrator.localize.beyond import MEMORY
from orchestrator.localize.causes import judge
from orchestrator.localize.facts import Facts
from orchestrator.localize.operation_kinds import WRITES_BY_INDEX
from orchestrator.localize.operations import Found
from orchestrator.localize.origins import Origin
from orchestrator.localize.pair import Pair
from orchestrator.localize.races import OF_ANOTHER, OTHERS_WRITE
from orchestrator.localize.remedies import Tried
from orchestrator.localize.result import (
    CHANGED_BEHIND,
    CONTROL_FLOW,
    DELAYS,
    HOST_VALUE,
    KINDS,
    NOT_TRIED,
    OTHER_CHOICE,
    OUTPUTS_DIFFER,
    REORDERED,
    Localization,
    Operation,
    Parted,
    rules_out,
)
from orchestrator.localize.session import Session
from orchestrator.localize.steps import StepsFound

_NEVER = "faults that part a pair more rarely than these pairs would show"


def told(session: Session, steps: StepsFound, pair: Pair, found: Sequence[Found], tried: Tried) -> Localization:
    """The result of a pair that parted; its traces go."""
    result = _result(session, steps, tried.instead or chosen(found), found, tried.facts)
    untried = [item.name for item in tried.remedies if item.outcome == NOT_TRIED and "time was over" in item.note]
    result = dataclasses.replace(
        result,
        not_looked_at=result.not_looked_at + [f"whether {name} cures it: the time was over" for name in untried],
        causes=judge(tried.facts),
        remedies=source.with_lines(tried.remedies, result.operation),
        replay=tried.facts.replay,
        dumps=session.dumps,
        further=[*result.further, *tried.further],
    )
    session.drop(pair)
    for item in [*found, *([tried.instead] if tried.instead is not None else [])]:
        session.drop(item.pair)
    return dataclasses.replace(result, message=message(result), next=following(result))


def clean(session: Session) -> Localization:
    """The result of pairs that all agreed, and what that is worth."""
    rate = rules_out(session.pairs)
    kinds = Counter(trial.pair for trial in session.trials)
    made = "; ".join(f"{count} that {KINDS[name]}" for name, count in kinds.items())
    result = Localization(
        found=False,
        subject=session.request.title,
        trials=session.trials,
        runs=session.pairs,
        rules_out=rate,
        not_looked_at=[*session.not_looked_at, f"{_NEVER} (under {rate:.0%})"],
        notes=session.notes,
        seconds=round(time.monotonic() - session.started, 1),
    )
    text = (
        f"no difference in {counted(session.pairs, 'pair')} of twins ({made}); {_printed(session)}"
        f"a fault that parts {rate:.0%} of such pairs or more would have been seen with 95 %"
    )
    return dataclasses.replace(result, message=text, next=_after_clean(session))


def _printed(session: Session) -> str:
    """What is said of a difference that nobody can tell from a time or a path."""
    return f"what they printed differs, and was not compared: {session.printed}; " if session.printed else ""


def _after_clean(session: Session) -> str:
    if session.printed:
        return "write what counts into a file of FOXRUN_OUT, or into a step (foxrun.trace), and it is compared"
    return "more pairs rule out rarer faults: --trials 20"


def chosen(found: Sequence[Found]) -> Found | None:
    """The origin that most trials name; of several, that of twins that differ in delays alone, or the earliest."""
    with_origin = [item for item in found if item.origin is not None]
    if not with_origin:
        return found[0] if found else None
    votes = Counter(origin_name(item) for item in with_origin)
    if worker := next((item for item in with_origin if _worker_behind(item, with_origin)), None):
        return worker
    return min(with_origin, key=lambda item: (-votes[origin_name(item)], not _provoked(item), _place(item)))


def _provoked(item: Found) -> bool:
    """Whether it is of twins that differ in delays alone, and shows what a race does."""
    return item.pair.kind.name == DELAYS and item.origin is not None and item.origin.how != OUTPUTS_DIFFER


def _worker_behind(item: Found, found: Sequence[Found]) -> bool:
    """Whether a trial found a draw in a worker of what the others merely see arriving in the main process."""
    origin = item.origin
    if origin is None or origin.process == item.pair.a.main.name or origin.a.kind not in ("draw", "seed"):
        return False
    others = [other.origin for other in found if other is not item and other.origin is not None]
    return bool(others) and all(o.process == origin.process or (o.outside and o.a.brings_data) for o in others)


def origin_name(item: Found) -> tuple[str, str, str]:
    """What two trials must share to have found the same origin."""
    origin = item.origin
    return ("", "", "") if origin is None else (origin.a.name, origin.a.where, origin.how)


def _place(item: Found) -> tuple[int, int]:
    assert item.origin is not None
    return (item.origin.a.step, item.origin.a.i)


def _result(
    session: Session, steps: StepsFound, main: Found | None, found: Sequence[Found], facts: Facts
) -> Localization:
    seen = main.steps if main is not None else steps
    operation = operation_of(main) if main is not None else None
    step = seen.step if seen.step is not None else operation.step if operation is not None else None
    if (
        main is not None
        and operation is not None
        and operation.step is not None
        and step is not None
        and (main.early or (operation.step < step and _made_before(operation, main.origin, seen)))
    ):
        text = (
            f"the operation differs at step {operation.step}; the first leaf to show it is {seen.leaf}, at step {step}"
        )
        session.notes.append(text)
        step = operation.step
    if session.request.other is not None and step == 0:
        session.notes.append(
            "both runs were held side by side from step 0; where the second one goes on from a later step, let both "
            "say which step they make: foxrun.step(n) as the loop's first line, docs/tracing.md"
        )
    others = {origin_name(item): item for item in found if item is not main and item.origin is not None}
    if main is not None:
        others.pop(origin_name(main), None)
    growth = steps.growth or seen.growth
    not_looked = list(session.not_looked_at)
    if operation is None:
        not_looked.append("the operation: the recorded events of both twins agree, or none were recorded")
    if any(item.cut for item in found):
        not_looked.append("events long after the twins part: there are too many of them to be held in memory")
    if steps.ignored:
        not_looked.append(f"generators that differ and that no step drew from: {', '.join(steps.ignored)}")
    return Localization(
        found=True,
        subject=session.request.title,
        step=step,
        leaf=seen.leaf,
        component=component_of_row(operation, seen)
        if session.request.other is not None or seen.declared
        else component_of(operation, seen, handed=main is not None and _handed_over(main.origin)),
        operation=operation,
        parted=seen.parted or _file_leaf(seen),
        trials=session.trials,
        runs=session.pairs,
        not_looked_at=not_looked,
        growth=growth,
        notes=session.notes,
        further=[made for item in others.values() if (made := operation_of(item)) is not None],
        seconds=round(time.monotonic() - session.started, 1),
    )


def _file_leaf(seen: StepsFound) -> list[Parted]:
    why = "the twins wrote other contents; no step of the program was seen"
    return [Parted(leaf=seen.leaf, kind="file", component="host", role="origin", why=why)] if seen.leaf else []


def operation_of(item: Found) -> Operation | None:
    """The origin of a trial as the result shows it; a host event, where nothing but what it gave differs."""
    origin = item.origin
    if origin is None:
        lead = next((x for x in item.leads if x.kind != "other"), next(iter(item.leads), None))
        if lead is None:
            return None
        origin = Origin(a=lead.a, b=lead.b, how=HOST_VALUE, detail=lead.text)
    e = origin.alone or origin.a
    line = e.where if origin.alone is not None or not origin.called else origin.called
    return Operation(
        name=e.name,
        kind=e.kind,
        where=line,
        module=e.module or (origin.reader.module if origin.reader is not None else ""),
        phase=e.phase,
        how=origin.how or OUTPUTS_DIFFER,
        source=source.line_of(line, item.pair.a.main.header, item.pair.directory),
        shapes=e.shapes,
        step=e.step,
        process=origin.process,
        events=[origin.a.i, origin.b.i],
        values=[origin.a.value, origin.b.value] if origin.a.value != origin.b.value else [],
        detail=origin.detail,
        leads=[lead.text for lead in item.leads if lead.near][:3],
    )


def _made_before(operation: Operation, origin: Origin | None, seen: StepsFound) -> bool:
    """Whether the origin's own step counts: weights that a step reads were made in the one before, also by a choice."""
    at_once = operation.step is not None and seen.step == operation.step + 1
    of_python = operation.kind == "host" and seen.kind in ("weight", "moment") and at_once
    return of_python or (origin is not None and not origin.outside)


def component_of_row(operation: Operation | None, steps: StepsFound) -> str:
    """Where rows decide: what a resumed run lacks is the state that its first row shows, and not who reads it first."""
    if steps.leaf.startswith("moment.") or (operation is not None and operation.phase == "optimizer"):
        return "optimizer"
    if operation is not None and operation.kind in ("draw", "seed") and steps.kind == "outcome":
        return "generator"
    if operation is not None and operation.phase == "gradients" and steps.kind == "gradient":
        return "weights"  # what is done with all gradients before the optimizer reads them
    if operation is not None and _made_outside(operation) and steps.kind in ("weight", "moment"):
        return "weights"
    if operation is not None and operation.how == CONTROL_FLOW and operation.kind not in ("draw", "seed"):
        return "host" if steps.component == "generator" else steps.component  # Python's state came to draw otherwise
    return steps.component


def _handed_over(origin: Origin | None) -> bool:
    """Whether the memory that changed is Python's (numpy, a buffer), which torch was handed."""
    return origin is not None and origin.how == CHANGED_BEHIND and any(event.brings_data for event in origin.chain)


def component_of(operation: Operation | None, steps: StepsFound, handed: bool = False) -> str:
    """A module's path, else data, generator, weights, optimizer, loss, host or state.

    ``handed``: the memory that changed was handed to torch from outside, so that it is no module's.
    """
    if operation is None:
        return steps.component
    if operation.detail.startswith((PAST, PAST_VIEW)) and steps.kind not in ("weight", "moment", "gradient"):
        return "data"  # whose memory it hits is chance
    if operation.how == CHANGED_BEHIND and operation.kind in ("draw", "seed"):
        return "generator"
    if (
        steps.component == "generator"
        and operation.kind == "op"
        and operation.how == REORDERED
        and not operation.module
    ):
        return "data"  # how far generators of threads have drawn by then is another matter
    if operation.how == CHANGED_BEHIND and steps.component == "generator":
        return "data"  # a thread draws on beside it, and what is read meanwhile is no generator
    if operation.detail == OTHER_CHOICE:
        return "data" if steps.component == "generator" else steps.component
    if operation.phase == "gradients" and operation.kind in ("op", "kernel"):
        return "weights"  # what is done with gradients before the optimizer reads them
    if operation.how == CHANGED_BEHIND and steps.kind == "gradient" and OTHERS_WRITE in operation.detail:
        return "data"  # it agreed in the forward pass, and no operation made it
    if operation.how == CHANGED_BEHIND and handed and steps.kind == "activation":
        return "data"
    if operation.how == CHANGED_BEHIND and steps.component:
        return steps.component  # the memory that changed, and not the module that was the first to read it
    if OF_ANOTHER in operation.detail and steps.kind == "weight":
        return "data"  # a model that another thread asks lends the row its weights
    if operation.module:
        return operation.module
    if operation.how == "seed" or operation.kind in ("draw", "seed"):
        return "generator"
    if operation.how == HOST_VALUE:
        return "data" if operation.phase == "data" or steps.component == "data" else "host"
    if operation.phase in ("optimizer", "data"):
        return operation.phase
    if operation.phase in ("other", "forward") and steps.kind != "input" and _writes_into(operation):
        return "state"  # what is written by index outlives the line: a table, a bank, a buffer
    if operation.phase in ("other", "forward") and steps.kind in ("gradient", "outcome"):
        return "loss"  # outside of every module, and the modules' own activations agree
    if _made_outside(operation) and steps.kind in ("weight", "moment"):
        return "weights"
    if operation.phase == "backward":
        return "weights" if steps.kind in ("gradient", "weight") else steps.component
    return steps.component or ("loss" if steps.kind == "activation" else "state")


def _made_outside(operation: Operation) -> bool:
    """Whether it runs outside of every module, optimizer and pass: what is made there changes weights."""
    return operation.phase == "other" and operation.kind == "op" and operation.how in (REORDERED, CONTROL_FLOW)


def _writes_into(operation: Operation) -> bool:
    short = operation.name.split(".")[1] if operation.name.startswith("aten.") else ""
    return operation.how == OUTPUTS_DIFFER and short in WRITES_BY_INDEX


def message(result: Localization) -> str:
    """One sentence: what and where, and why."""
    where = f"at step {result.step} in {result.leaf}" if result.step is not None else f"in {result.leaf}"
    text = f"the twins part {where}{_only_where(result)}"
    if result.leaf == MEMORY:
        text = f"no leaf differs in {result.runs} pairs of twins, and yet the program writes past its memory"
    operation = result.operation
    if operation is not None:
        text += f"; origin: {operation.name}" + (f" at {operation.where}" if operation.where else "")
    if result.causes:
        first = result.causes[0]
        text += f"; cause: {first.name} ({first.confidence})"
    return text


def _only_where(result: Localization) -> str:
    """That it takes another number of threads: pairs that differ in all else agreed, so runs on one machine repeat."""
    first = next((trial for trial in result.trials if trial.leaf), None)
    agreed = sum(1 for trial in result.trials if trial.pair == "hostile" and not trial.leaf)
    if first is None or first.pair != "threads" or not agreed:
        return ""
    return f" when they run with other numbers of threads, and not otherwise ({counted(agreed, 'pair')} agreed)"


def counted(number: int, what: str) -> str:
    """1 pair, 2 pairs."""
    return f"{number} {what}" + ("" if number == 1 else "s")


def following(result: Localization) -> str:
    """What to do next."""
    verified = next((item for item in result.remedies if item.outcome == "verified"), None)
    if verified is not None:
        return f"until the code is mended, {verified.name} makes the twins agree; {verified.text}"
    written = next((item for item in result.remedies if item.name == "code"), None)
    if written is not None:
        return written.text
    return "more trials may show more: --trials 10"

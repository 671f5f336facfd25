"""A drifted pair, or two runs, run again here: all that they were run with is known."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.compare.verdict import DRIFT, GATE_FAILED, IDENTICAL, INCOMPARABLE, INCOMPLETE, Verdict
from orchestrator.errors import FoxrunError, IncompleteRun, UsageError, WorkflowNotFound
from orchestrator.localize import known_command, pair_place
from orchestrator.localize.known_command import LATE_STEP, Known
from orchestrator.localize.pair import Request
from orchestrator.localize.result import INHERITED, ORIGIN, Localization, Parted
from orchestrator.localize.session import Listener, Options
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from orchestrator.places import Places

STEPS_AFTER = 20  # here it may part later than the pair did
_FIRST = "first in dataflow order of the pair's own leaves that part at this step; those before it agree"


def localize_pair(
    subject: Sequence[str],
    *,
    settings: Settings,
    options: Options,
    environ: Mapping[str, str],
    out: Path | None,
    engine: Callable[[], Engine],
    places: Places | None,
    listener: Listener,
) -> Localization:
    """Run the trainer of a pair again, traced.

    Raises UsageError for what is no pair, IncompleteRun when what it was run with cannot be found out.
    """
    fetch = _Inputs(settings, places)
    if not 1 <= len(subject) <= 2:
        raise UsageError(
            f"{shlex.join(subject)}: one pair's name, or two runs, or -- and a command",
            remedy=f"foxrun localize -- {shlex.join(subject)}",
        )
    sides = (subject[0], subject[1]) if len(subject) == 2 else pair_place.two_runs(subject[0], places)
    title = " ".join(subject)
    if sides is None:
        there = engine()
        try:
            title, workflow, verdict = _workflow(there, subject[0])
        except WorkflowNotFound as error:
            listener.stage(f"{error}; looking for it in the history")
            sides, places = pair_place.of_history(there, subject[0], settings, error)
            fetch = _Inputs(settings, places)
            listener.stage(f"workflow {title} is gone; its runs are {sides[0]} and {sides[1]}")
        else:
            known = known_command.of_workflow(there, workflow, verdict, fetch)
    if sides is not None:
        known, verdict = _of_runs(*sides, places, fetch)
    if verdict.verdict == IDENTICAL:
        raise UsageError(
            f"{title} is identical: {verdict.message}; there is nothing to locate",
            remedy=f"to look for rarer faults all the same: {pair_place.by_hand(known)}",
        )
    return _run(known, verdict, options, environ, settings, out, listener, title)


def _of_runs(
    a: str, b: str, places: Places | None, fetch: Callable[[str], Path | None]
) -> tuple[Known, Verdict]:  # fmt: skip
    from orchestrator import comparison

    verdict = comparison.compare(a, b, places=places)
    if verdict.verdict in (INCOMPARABLE, INCOMPLETE):
        raise IncompleteRun(f"{a} and {b} cannot be compared: {verdict.message}", remedy=verdict.next)
    return known_command.of_manifest(verdict, fetch), verdict


def _run(
    known: Known, verdict: Verdict, options: Options, environ: Mapping[str, str], settings: Settings,
    out: Path | None, listener: Listener, title: str,
) -> Localization:  # fmt: skip
    from orchestrator.localize.request import run

    directory, code = pair_place.code_of(known, title, settings)
    first = verdict.first_divergence
    step = first.step if first is not None and isinstance(first.step, int) else None
    if options.stop_after is None and step is not None:
        options = dataclasses.replace(options, stop_after=step + STEPS_AFTER)
    variables = {"FOXRUN_SHA": known.commit} if known.commit else {}
    request = Request(
        command=known.words, directory=directory, environ={**environ, **variables}, in_place=True, title=title,
        legs=known.legs,
    )  # fmt: skip
    if step is not None and step >= LATE_STEP:
        both = known_command.with_checkpoint(known.words, step - 2)
        if both is not None:
            request = dataclasses.replace(request, command=both[0], from_checkpoint=both[1], checkpoint_step=step - 2)
    result = run(request, options, listener, out)
    return _beside(result, verdict, code)


def _beside(result: Localization, verdict: Verdict, code: str) -> Localization:
    """The result with what the pair itself said. Where its rows say more than the twins' do, they decide."""
    notes = list(result.notes)
    first = verdict.first_divergence
    if first is not None:
        notes.insert(
            0, f"the pair itself parted at step {first.step} in {first.leaf}; this was found by running it again here"
        )
        if result.found and (result.step, result.leaf) != (first.step, first.leaf):
            if _shows_later(result, verdict):
                result = _by_the_pair(result, verdict)
            else:
                notes.append(
                    "the place is not the pair's: the first leaf to part may alternate, or this machine is another one"
                )
    if code:
        notes.append(code)
    return dataclasses.replace(result, verdict=verdict, notes=notes)


def _shows_later(result: Localization, verdict: Verdict) -> bool:
    """Whether the twins showed leaves of other names than the pair's rows have, and not before the pair parted."""
    first = verdict.first_divergence
    names = {leaf.name for leaf in verdict.parted}
    return (
        first is not None and isinstance(first.step, int) and result.step is not None and result.step >= first.step
        and bool(names) and not any(leaf.leaf in names and leaf.leaf != "loss" for leaf in result.parted)
    )  # fmt: skip


def _by_the_pair(result: Localization, verdict: Verdict) -> Localization:
    from orchestrator.localize.conclusion import message

    first = verdict.first_divergence
    assert first is not None and isinstance(first.step, int)
    parted = [
        Parted(
            leaf=leaf.name, kind=leaf.kind, component=leaf.component,
            role=ORIGIN if leaf.name == first.leaf else INHERITED,
            why=_FIRST if leaf.name == first.leaf else f"stands after {first.leaf} in dataflow order",
            a=leaf.checksum_a, b=leaf.checksum_b,
        )
        for leaf in verdict.parted
    ]  # fmt: skip
    component = next((leaf.component for leaf in parted if leaf.leaf == first.leaf), result.component)
    changed = dataclasses.replace(result, step=first.step, leaf=first.leaf, component=component, parted=parted)
    return dataclasses.replace(changed, message=message(changed))


def _workflow(engine: Engine, text: str) -> tuple[str, Mapping[str, Any], Verdict]:
    from orchestrator.following import judge
    from orchestrator.lookup import full_name
    from orchestrator.outcome import is_completed

    name = full_name(engine, text)
    workflow = engine.get(name)
    if not is_completed(workflow):
        raise UsageError(f"workflow {name} is not completed", remedy=f"foxrun watch {name}")
    verdict = judge(engine, workflow)
    if verdict.verdict not in (DRIFT, GATE_FAILED, IDENTICAL) and verdict.exit_code:
        kind = IncompleteRun if verdict.verdict in (INCOMPARABLE, INCOMPLETE) else UsageError
        raise kind(
            f"workflow {name} is {verdict.verdict}, not parted: {verdict.message.strip()}", remedy=f"foxrun logs {name}"
        )
    return name, workflow, verdict


class _Inputs:
    """Inputs by their key: in the store of this machine, else fetched from the bucket that is set."""

    def __init__(self, settings: Settings, places: Places | None) -> None:
        self._settings, self._places = settings, places

    def __call__(self, key: str) -> Path | None:
        from orchestrator.settings import home_directory

        home = home_directory(self._settings)
        for here in (home / "artifacts" / key, home / "fetched" / key):
            if here.is_file():
                return here
        if not self._settings.s3_bucket:
            return None
        from orchestrator.places import Places

        target = home / "fetched" / key
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            (self._places or Places(self._settings)).store().fetch(key, target)
        except FoxrunError as error:
            raise IncompleteRun(f"the input {key} cannot be fetched: {error}", remedy=error.remedy) from None
        return target

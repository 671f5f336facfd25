"""Several gates in a row: how often they part, and whether the leaf that parts first alternates from trial to trial.

A fault that comes and goes shows first as another leaf each time, and each of those looks like the culprit alone.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator import gate
from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import Verdict
from orchestrator.localize.result import rules_out
from orchestrator.twin_run import GateRequest, Listener


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One gate: its verdict, and where it parted (empty where it did not)."""

    number: int
    verdict: str
    step: str = ""
    leaf: str = ""
    delta: str = ""


@dataclass(frozen=True, kw_only=True)
class Trials:
    """All gates; ``verdict`` is the worst, with the trials told in its notes."""

    verdict: Verdict
    trials: list[Trial]

    def rows(self) -> list[list[str]]:
        """The table, its head first."""
        head = ["TRIAL", "VERDICT", "STEP", "LEAF", "DELTA"]
        return [head, *([str(t.number), t.verdict, t.step or "-", t.leaf or "-", t.delta or "-"] for t in self.trials)]

    def sentence(self) -> str:
        """What the table says of variability, never more than so many trials can."""
        return sentence(self.trials)


def sentence(trials: list[Trial]) -> str:
    """How many parted, and whether in the same place."""
    parted = [trial for trial in trials if trial.verdict == v.GATE_FAILED]
    other = len(trials) - len(parted) - sum(trial.verdict == v.IDENTICAL for trial in trials)
    text = f"{len(parted)} of {len(trials)} trials parted" + (f", {other} ended otherwise" if other else "")
    if not parted:
        rate = rules_out(len(trials))
        return f"{text}; a fault that parts a pair with chance {rate:.2f} or more would have shown with 95 % certainty"
    places = collections.Counter((trial.step, trial.leaf) for trial in parted)
    if len(places) == 1:
        (step, leaf), _ = places.popitem()
        return f"{text}, each first at step {step} in {leaf}"
    shown = ", ".join(f"{leaf} at step {step} ({count})" for (step, leaf), count in sorted(places.items()))
    return f"{text}; the first leaf alternates: {shown}. So none of these is the cause by itself"


def run_trials(
    request: GateRequest,
    count: int,
    environ: Mapping[str, str],
    listener: Listener,
    *,
    directory: Path,
    explain: bool,
) -> Trials:
    """Run the gate ``count`` times, each in a directory of its own below ``request.out``; arguments as of run_gate.

    Only the first that parts is explained: the search for the cause takes minutes.
    """
    verdicts: list[Verdict] = []
    trials: list[Trial] = []
    for number in range(1, count + 1):
        listener.stage(f"trial {number} of {count}")
        one = dataclasses.replace(request, out=request.out / f"trial-{number}")
        untold = explain and not any(trial.verdict == v.GATE_FAILED for trial in trials)
        verdict = gate.run_gate(one, environ, listener, directory=directory, explain=untold)
        first = verdict.first_divergence
        verdicts.append(verdict)
        trials.append(
            Trial(
                number=number,
                verdict=verdict.verdict,
                step=str(first.step) if first else "",
                leaf=first.leaf if first else "",
                delta=first.delta if first else "",
            )
        )
    worst = v.worst(verdicts)
    return Trials(verdict=dataclasses.replace(worst, notes=[*worst.notes, sentence(trials)]), trials=trials)

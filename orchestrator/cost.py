"""What each mode costs here: every mode in turn, several rounds in one run, as ratios to mode 0 of the same round.

Each measurement is a process of its own, since modes set what a process cannot unset; the first steps are not counted.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foxrun.problems import ContractError
from foxrun.reader import open_run
from foxrun.schema import TIMING
from orchestrator.errors import JobFailed, UsageError
from orchestrator.twin_run import GateRequest, this_interpreter, trainer_arguments

# Of a run's steps the first quarter warms up: allocator, kernels compiled or chosen, caches.
WARM_UP = 0.25
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What is measured: a mode, as it runs or without fingerprints."""

    mode: int
    bare: bool = False

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"mode {self.mode}" + (", no fingerprints" if self.bare else "")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: seconds a step in each round, and the ratio to mode 0 of the same round."""

    name: str
    mode: int
    fingerprints: bool
    seconds: list[float]
    ratios: list[float]

    @property
    def ratio(self) -> float:
        """The median over rounds."""
        return statistics.median(self.ratios)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A measured table, and what it was measured on."""

    rows: list[Row]
    rounds: int
    steps: int
    warm_up: int
    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    parameters: Mapping[str, str] = field(default_factory=dict)


def variants(modes: Sequence[int], *, bare: bool) -> list[Variant]:
    """Mode 0 first, to which all others are compared; each other mode as it runs, and bare where that is known."""
    others = [mode for mode in modes if mode != 0]
    found = [Variant(mode=0), *(Variant(mode=mode) for mode in others)]
    return [*found, *(Variant(mode=mode, bare=True) for mode in others if bare)]


def measure(
    trainer: Sequence[str], wanted: Sequence[Variant], *, seed: int, steps: int, rounds: int,
    parameters: Mapping[str, str], data: Path | None, say: Callable[[str], None],
) -> Cost:  # fmt: skip
    """Run every variant once a round, forwards and backwards in turn.

    Raises:
        JobFailed: a run failed.
        UsageError: the trainer writes no figures of time.
    """
    warm_up = int(steps * WARM_UP)
    seconds: dict[str, list[float]] = {variant.name: [] for variant in wanted}
    manifest: Mapping[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="foxrun-cost-") as scratch:
        for number in range(rounds):
            for variant in wanted if number % 2 == 0 else reversed(wanted):
                out = Path(scratch) / f"{number}-{variant.mode}-{variant.bare}"
                took, manifest = _run(trainer, variant, out, seed, steps, warm_up, parameters, data)
                seconds[variant.name].append(took)
                say(f"round {number + 1} of {rounds}: {variant.name}: {1 / took:.1f} steps/s")
    base = seconds[wanted[0].name]
    rows = [
        Row(
            name=variant.name,
            mode=variant.mode,
            fingerprints=variant.mode != 0 and not variant.bare,
            seconds=seconds[variant.name],
            ratios=[took / zero for took, zero in zip(seconds[variant.name], base, strict=True)],
        )
        for variant in wanted
    ]
    return Cost(
        rows=rows,
        rounds=rounds,
        steps=steps,
        warm_up=warm_up,
        environment=manifest.get("environment") or {},
        config={k: v for k, v in (manifest.get("config") or {}).items() if k not in ("steps", "eval_steps")},
        parameters=dict(parameters),
    )


def _run(
    trainer: Sequence[str], variant: Variant, out: Path, seed: int, steps: int, warm_up: int,
    parameters: Mapping[str, str], data: Path | None,
) -> tuple[float, Mapping[str, Any]]:  # fmt: skip
    given = {**parameters, **({"fingerprints": "off"} if variant.bare else {})}
    asked = GateRequest(
        trainer=tuple(trainer), out=out, seed=seed, mode=variant.mode, steps=steps, parameters=given, data=data
    )
    command = [*this_interpreter(asked.trainer), *trainer_arguments(asked, out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UsageError(f"the trainer cannot be started: {command[0]}: {error.strerror}", remedy="check it") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise JobFailed(
            f"{variant.name}: the trainer ended with exit code {done.returncode}: {last[:_LONGEST_MESSAGE]}",
            remedy="mend it, and measure again",
        )
    try:
        run = open_run(out)
    except ContractError as error:
        raise JobFailed(f"{variant.name}: {error.what}", remedy=error.remedy) from None
    return seconds_a_step(_rows(run.blocks(TIMING)) if TIMING in run.files else [], warm_up), run.manifest or {}


def _rows(blocks: Any) -> list[Any]:
    return [json.loads(line) for line in b"".join(blocks).splitlines() if line.strip()]


def seconds_a_step(rows: Sequence[Mapping[str, Any]], warm_up: int) -> float:
    """Of the training steps after the warm-up, from timing.jsonl. Raises UsageError where there are none."""
    kept = [row for row in rows if row.get("phase") == "train" and row.get("step", 0) - row.get("steps", 0) >= warm_up]
    steps = sum(row["steps"] for row in kept)
    if not steps or sum(row["seconds"] for row in kept) <= 0:
        raise UsageError(
            "the trainer's timing.jsonl has no training steps after the warm-up",
            remedy='give more --steps; another trainer writes rows {"step", "phase", "steps", "seconds"} there',
        )
    return float(sum(row["seconds"] for row in kept) / steps)

"""The verdict of a seed sweep: the pairs' verdicts in one table, and whether the seed matters at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import comparison
from orchestrator.compare import verdict as v
from orchestrator.compare.policy import Options
from orchestrator.compare.verdict import Agreement, SeedRow, Verdict
from orchestrator.errors import FoxrunError

SUBJECT = "seeds"
_PNL = "total_pnl_usd"
_FORCED = Options(force=True)


@dataclass(frozen=True, kw_only=True)
class OfSeed:
    """What a sweep's pair left: its verdict.json, leg A's run, and how its comparison ended. Files may be missing."""

    seed: int
    verdict: Path
    run: Path
    status: str


def sweep_verdict(pairs: Sequence[OfSeed]) -> Verdict:
    """The worst verdict of all, with the table of all, the leaves that no seed reaches, and seeds that do nothing."""
    verdicts = [_verdict_of(pair) for pair in pairs]
    unreached, unused = _reach(pairs)
    rows = [_row(pair.seed, verdict, unused=pair.seed in unused) for pair, verdict in zip(pairs, verdicts, strict=True)]
    worst = v.worst(verdicts)
    agreed = worst.agreed or (Agreement() if unreached else None)
    if agreed is not None:
        agreed = dataclasses.replace(agreed, seed_independent=unreached)
    notes = list(worst.notes)
    if unused:
        notes.append(
            f"seed {', '.join(map(str, unused))}: every compared bit is that of seed {pairs[0].seed}, "
            "so the seed is not used: check that it reaches the generators"
        )
    return dataclasses.replace(
        worst, subject=SUBJECT, message=_message(rows, worst), seeds=rows, agreed=agreed, notes=notes
    )


def _message(rows: Sequence[SeedRow], worst: Verdict) -> str:
    bad = [row for row in rows if v.EXIT_CODES[row.verdict] != 0]
    if not bad:
        return f"{len(rows)} of {len(rows)} seeds: {worst.message}"
    first = next(row for row in bad if v.EXIT_CODES[row.verdict] == worst.exit_code)
    others = f"; {len(rows) - len(bad)} of {len(rows)} seeds agree"
    return f"seed {first.seed}: {first.message}{others}"


def _row(seed: int, verdict: Verdict, *, unused: bool) -> SeedRow:
    first = verdict.first_divergence
    return SeedRow(
        seed=seed,
        verdict=verdict.verdict,
        step=str(first.step) if first else "",
        leaf=first.leaf if first else "",
        pnl_difference=next((row.delta for row in verdict.outcome if row.key == _PNL), None),
        message=verdict.message,
        unused=unused,
    )


def _verdict_of(pair: OfSeed) -> Verdict:
    if pair.verdict.is_file():
        try:
            return comparison.read_verdict(pair.verdict)
        except FoxrunError as error:
            return v.make(v.INCOMPLETE, str(error), next=error.remedy)
    word = v.INFRASTRUCTURE if pair.status == "Error" else v.JOB_FAILED
    return v.make(word, f"its comparison ended as {pair.status or 'nothing'} and wrote no verdict")


def _reach(pairs: Sequence[OfSeed]) -> tuple[list[str], list[int]]:
    """The leaves that are equal for all seeds, in dataflow order; the seeds that give the first one's every bit."""
    unreached: list[str] | None = None
    unused = []
    runs = [pair for pair in pairs if pair.run.is_dir() and any(pair.run.iterdir())]
    for pair in runs[1:]:
        try:
            compared = comparison.compare(runs[0].run, pair.run, _FORCED)
        except FoxrunError:
            continue
        if compared.exit_code == 0:
            unused.append(pair.seed)
        elif compared.verdict == v.DRIFT and compared.agreed is not None:
            same = compared.agreed.seed_independent
            unreached = same if unreached is None else [name for name in unreached if name in set(same)]
    return unreached or [], unused

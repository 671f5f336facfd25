"""Rows that the program itself writes (the run contract), as rows of a trace: its own leaves, in its own order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from foxrun.problems import ContractError
from foxrun.reader import open_run
from orchestrator.localize.trace import Leaf, Row

if TYPE_CHECKING:
    from foxrun.run import Run

_ROWS_AT_ONCE = 16
_NOT_TAKEN = 0


def run_in(out: Path) -> Run | None:
    """The run that a twin wrote into its directory, however it ended; None where it wrote none."""
    try:
        run = open_run(out)
        return run if run.stored_name("diag.jsonl") is not None else None
    except (ContractError, OSError):
        return None


def rows(run: Run) -> Iterator[Row]:
    """Its rows, one at a time; leaves without fingerprints count by their checksums and metrics."""
    leaves = run.leaves
    width = 8 * len(leaves)
    bits, first = b"", -1
    for row in run.rows():
        if not leaves:
            values = {**row.checksums, **row.metrics}
            named = (Leaf(name, "", "outcome", repr(value), _number(value)) for name, value in values.items())
            yield Row(step=row.step, leaves=tuple(named))
            continue
        if not first <= row.index < first + _ROWS_AT_ONCE or first < 0:
            first = row.index
            bits = run.bits(first, first + _ROWS_AT_ONCE)
        mine = bits[(row.index - first) * width : (row.index - first + 1) * width]
        if len(mine) < width:
            return  # killed between a row and its fingerprints
        prints = [int.from_bytes(mine[at : at + 8], "little") for at in range(0, width, 8)]
        yield Row(
            step=row.step,
            leaves=tuple(
                Leaf(leaf.name, leaf.component, leaf.kind, f"{found:016x}", _number(row.checksums.get(leaf.name)))
                for leaf, found in zip(leaves, prints, strict=True)
                if found != _NOT_TAKEN
            ),
        )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

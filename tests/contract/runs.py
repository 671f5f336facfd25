"""Run directories for the tests of the contract."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

from foxrun import Leaf, RunWriter, fingerprint

LEAVES = [
    Leaf("w", "net", "weight", "float64", (3,)),
    Leaf("h", "net", "activation", "float64", (3,)),
    Leaf("g", "net", "gradient", "float64", (3,)),
]
MANIFEST = {"seed": 7, "mode": 1, "config": {"rate": 0.1}, "code": {"tree_run": "a" * 40}}


def rows_of(count: int, seed: int = 7) -> tuple[list[dict[str, Any]], bytes]:
    """``count`` rows and their fingerprints."""
    draw = random.Random(seed)
    rows, bits = [], array("Q")
    for step in range(count):
        values = [array("d", [draw.gauss(0, 1) for _ in range(3)]) for _ in LEAVES]
        bits.extend(fingerprint(value) for value in values)
        checksums = {leaf.name: sum(value) for leaf, value in zip(LEAVES, values, strict=True)}
        rows.append({"step": step, "phase": "train", "checksums": checksums, "metrics": {"loss": draw.random()}})
    return rows, bits.tobytes()


def write_run(out: Path, count: int = 10, *, seed: int = 7, rows_per_block: int = 4) -> Path:
    """A finished run below ``out``; its directory."""
    rows, bits = rows_of(count, seed)
    with RunWriter(out, leaves=LEAVES, manifest=MANIFEST, rows_per_block=rows_per_block) as run:
        run.append(rows[:3], bits[: 3 * 24])
        run.append(rows[3:], bits[3 * 24 :])
        run.write_summary({"total_pnl_usd": 12.5, "trades": 3})
        run.timing({"step": 0, "seconds": 0.25})
    return run.path

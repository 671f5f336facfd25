"""Small runs for the tests: written by RunWriter, changed byte by byte, sealed again or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.synthetic import manifest_of, reseal
from foxrun import Leaf, RunWriter, jsonio

LEAVES = ("env_cash", "vsn_w", "encoder_output", "q_grad")
KINDS = ("state", "weight", "activation", "gradient")
SUMMARY = {"total_pnl_usd": 1000.0, "max_drawdown_usd": -250.0, "trades": 12}


def leaf(name: str, kind: str = "activation") -> Leaf:
    return Leaf(name, name.split("_")[0], kind, "float32", (4,))


def word(row: int, column: int) -> int:
    """A fingerprint that is different everywhere, and never 0."""
    return (row * 1000 + column + 1) * 0x9E3779B97F4A7C15 % 2**64


def checksum(row: int, column: int) -> float:
    return row + column / 8


def make(
    out: Path,
    *,
    rows: int = 6,
    names: Sequence[str] = LEAVES,
    seed: int = 43,
    mode: int = 1,
    change: Callable[[list[list[int]], list[dict[str, Any]]], None] = lambda words, lines: None,
    summary: dict[str, Any] | None = SUMMARY,
    finish: str | None = "completed",
    manifest: dict[str, Any] | None = None,
    compared: dict[str, bytes] | None = None,
) -> Path:
    """A run; `change` edits its fingerprints and rows before they are written. The first two leaves have checksums."""
    words = [[word(row, column) for column in range(len(names))] for row in range(rows)]
    lines: list[dict[str, Any]] = [
        {
            "step": row,
            "phase": "train",
            "checksums": {name: checksum(row, column) for column, name in enumerate(names[:2])},
            "metrics": {"loss": row / 4, "trades": row},
        }
        for row in range(rows)
    ]
    change(words, lines)
    leaves = [leaf(name, KINDS[i % 4]) for i, name in enumerate(names)]
    writer = RunWriter(out, leaves=leaves, manifest=manifest or manifest_of(seed, mode))
    writer.append(lines, b"".join(w.to_bytes(8, "little") for row in words[: len(lines)] for w in row))
    for name, data in (compared or {}).items():
        writer.attach(name, data, compared=True)
    if summary is not None:
        writer.write_summary(summary)
    if finish is None:
        writer.close()
    else:
        writer.finish(finish)
    return writer.path


def edit_json(path: Path, edit: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def edit_rows(run: Path, edit: Callable[[list[Any]], None], *, seal: bool = True) -> None:
    """Change rows of diag.jsonl after the fact."""
    path = run / "diag.jsonl"
    rows = [jsonio.loads(line) for line in path.read_bytes().splitlines()]
    edit(rows)
    path.write_text("".join(jsonio.dumps(row) + "\n" for row in rows))
    if seal:
        reseal(run)

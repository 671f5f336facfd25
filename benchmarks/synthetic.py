"""Synthetic run directories, written by foxrun.RunWriter: any number of rows and leaves, seeded, of the real shape."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from foxrun import Leaf, RunWriter, jsonio
from foxrun.files import sha256_file

CHECKSUMS = 42
METRICS = 12
_GROUP = 256
_COMPONENTS = ("data", "environment", "encoder", "heads", "replay", "optimiser", "controllers")
_KINDS = ("state", "weight", "moment", "activation", "gradient")


def leaves_of(count: int) -> list[Leaf]:
    """`count` leaves with the components and kinds of the contract, in dataflow order."""
    return [
        Leaf(
            name=f"{_COMPONENTS[i * len(_COMPONENTS) // count]}.{i:03d}",
            component=_COMPONENTS[i * len(_COMPONENTS) // count],
            kind=_KINDS[i % len(_KINDS)],
            dtype="float32",
            shape=(128, 1 + i % 7),
        )
        for i in range(count)
    ]


def manifest_of(seed: int, mode: int = 1) -> dict[str, Any]:
    """The fields of a manifest that a trainer knows."""
    return {
        "code": {"commit_asked": "c" * 40, "tree_asked": "7" * 40, "tree_run": "7" * 40, "branch": "main"},
        "seed": seed,
        "mode": mode,
        "config": {"environments": 128, "window": 32, "steps": 50},
        "inputs": [{"name": "book.dbn", "sha256": "d" * 64, "size": 1000}],
        "environment": {"python": "3.11", "torch": "2.13.0", "cpu_model": "synthetic", "threads": 1, "gpu_uuid": ""},
        "variables": {"OMP_NUM_THREADS": "1"},
        "command": ["python", "-m", "trainer"],
    }


def write_run(
    out: Path,
    *,
    rows: int,
    leaves: int,
    seed: int = 43,
    mode: int = 1,
    manifest: dict[str, Any] | None = None,
    summary: dict[str, Any] | None = None,
    finish: bool = True,
) -> Path:
    """A run of `rows` rows x `leaves` leaves (0: without fingerprints) in `out`; the same arguments give equal bytes.

    The fifth leaf never changes; from two thirds on (evaluation) gradients are not taken. Returns the run directory.
    """
    names = leaves_of(leaves)
    writer = RunWriter(out, leaves=names, manifest=manifest if manifest is not None else manifest_of(seed, mode))
    words = np.random.Generator(np.random.PCG64(seed))
    numbers = random.Random(seed)
    first_eval = rows * 2 // 3 if rows > 3 else rows
    gradients = [i for i, leaf in enumerate(names) if leaf.kind == "gradient"]
    checksummed = [leaf.name for leaf in names[:: max(1, leaves // CHECKSUMS)]][:CHECKSUMS]
    for start in range(0, rows, _GROUP):
        stop = min(rows, start + _GROUP)
        block = words.integers(1, 2**64, size=(stop - start, leaves), dtype=np.uint64)
        if leaves > 5:
            block[:, 5] = 0x1234_5678_9ABC_DEF0
        if stop > first_eval and gradients:
            block[max(0, first_eval - start) :, gradients] = 0
        batch = [
            {
                "step": step,
                "phase": "train" if step < first_eval else "eval",
                "checksums": {name: numbers.gauss(0, 10) for name in checksummed},
                "metrics": {f"metric_{i}": numbers.gauss(0, 1) for i in range(METRICS - 1)} | {"trades": step % 17},
            }
            for step in range(start, stop)
        ]
        writer.append(batch, block.astype("<u8").tobytes() if leaves else b"")
    writer.write_summary(
        summary
        if summary is not None
        else {
            "total_pnl_usd": 12345.5,
            "max_drawdown_usd": -812.25,
            "win_rate": 0.53125,
            "trades": 417,
            "entropy": 1.25,
            "sharpe": 0.75,
            "stopped": False,
            "note": None,
        }
    )
    if finish:
        writer.finish()
    else:
        writer.close()
    return writer.path


def reseal(run_directory: Path, *, rows: int | None = None) -> None:
    """Make the manifest agree with the files as they are now: sizes, hashes, rows; files that are gone are dropped."""
    path = run_directory / "run_manifest.json"
    manifest = jsonio.loads(path.read_bytes())
    kept = []
    for entry in manifest["files"]:
        file = run_directory / entry["name"]
        if file.exists():
            kept.append(entry | {"size": file.stat().st_size, "sha256": sha256_file(file)})
    manifest["files"] = kept
    manifest["blocks"] = {}
    if rows is not None:
        manifest["rows"] = rows
    path.write_text(jsonio.pretty(manifest))

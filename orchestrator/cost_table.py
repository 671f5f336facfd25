"""The table of `foxrun cost` as Markdown and as the JSON that trainers read their mode's figure from."""

from __future__ import annotations

import dataclasses
import hashlib
import statistics
from pathlib import Path
from typing import Any

from foxrun import jsonio
from foxrun.files import write_atomic
from orchestrator.cost import Cost
from orchestrator.goldens.golden import hardware_of, slug

SIZES = ("envs", "width", "window", "batch")
VERSIONS = ("torch", "cuda", "cudnn", "driver", "triton", "python")


def as_dict(cost: Cost) -> dict[str, Any]:
    """The table as JSON: figures of every round, and what they were measured on."""
    return {
        "cost": 1,
        "hardware": hardware_of(cost.environment),
        **{k: v for k, v in dataclasses.asdict(cost).items() if k != "rows"},
        "rows": [{**dataclasses.asdict(row), "ratio": row.ratio} for row in cost.rows],
    }


def markdown(cost: Cost) -> str:
    """The table for a document, with the machine and versions under it."""
    environment = cost.environment
    lines = ["| | steps/s | of mode 0's time | spread |", "|---|---|---|---|"]
    for row in cost.rows:
        speed = 1 / statistics.median(row.seconds)
        spread = "" if row is cost.rows[0] else f"{min(row.ratios):.3f} to {max(row.ratios):.3f}"
        lines.append(f"| {row.name} | {speed:,.1f} | {row.ratio:.3f} | {spread} |")
    sizes = ", ".join(f"{name} {cost.config[name]}" for name in SIZES if cost.config.get(name))
    versions = ", ".join(f"{name} {environment[name]}" for name in VERSIONS if environment.get(name))
    where = f"{hardware_of(environment)}; {versions}"
    rounds = f"{cost.rounds} round{'s' if cost.rounds != 1 else ''}, interleaved"
    how = f"{rounds}, {cost.steps - cost.warm_up} of {cost.steps} steps counted"
    return "\n".join([*lines, "", f"{where}. {sizes}. Medians of {how}. `foxrun cost` prints it.", ""])


def remember(cost: Cost, home: Path) -> Path:
    """Keep the table where trainers look for it; one per hardware, versions and sizes. Returns the file."""
    value = as_dict(cost)
    environment = cost.environment
    key = jsonio.canonical([cost.config, *(environment.get(name) for name in VERSIONS)])
    name = f"{slug(value['hardware'])}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.json"
    folder = home / "cost"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / name, jsonio.pretty(value))
    return folder / name

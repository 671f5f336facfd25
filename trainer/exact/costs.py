"""The measured cost of a mode, from the tables that ``foxrun cost`` keeps: same hardware, versions and size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOT_MEASURED = "not measured (foxrun cost measures it)"
_VERSIONS = ("torch", "cuda", "cudnn", "driver", "gpu_name", "cpu_model", "cpu_capability")


def cost_of(mode: int, environment: Mapping[str, Any], config: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """What the mode costs here in words, or that it was not measured.

    Args:
        mode: of this run.
        environment: of this run's manifest; a table of other hardware or versions says nothing.
        config: of this run's manifest, without the run's length; a table of another size says nothing either.
        variables: where FOXRUN_HOME or XDG_STATE_HOME may name the place of the tables.
    """
    if mode == 0:
        return "none: it is what the others are measured against"
    for file in sorted(_folder(variables).glob("*.json"), key=_age):
        table = _read(file)
        theirs = table.get("environment")
        if not isinstance(theirs, Mapping) or any(theirs.get(k) != environment.get(k) for k in _VERSIONS):
            continue
        if table.get("config") != {k: v for k, v in config.items() if k not in ("steps", "eval_steps")}:
            continue
        for row in table.get("rows") or []:
            if row.get("mode") == mode and row.get("fingerprints"):
                low, high = min(row["ratios"]), max(row["ratios"])
                return f"{row['ratio']:.3f} of mode 0's time ({low:.3f} to {high:.3f} in {table['rounds']} rounds)"
    return NOT_MEASURED


def _folder(variables: Mapping[str, str]) -> Path:
    if variables.get("FOXRUN_HOME"):
        return Path(variables["FOXRUN_HOME"]).expanduser() / "cost"
    state = variables.get("XDG_STATE_HOME") or Path(variables.get("HOME", "/")) / ".local" / "state"
    return Path(state) / "foxrun" / "cost"


def _age(file: Path) -> tuple[float, str]:
    """The newest first."""
    try:
        return -file.stat().st_mtime, file.name
    except OSError:
        return 0.0, file.name


def _read(file: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(file.read_text("utf-8"))
        return value if isinstance(value, dict) and value.get("cost") == 1 else {}
    except (OSError, ValueError):
        return {}

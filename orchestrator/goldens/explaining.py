"""The story of goldens in words: which one a run is held against, why none fits it, and each reason ever given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foxrun.run import Run
from orchestrator.goldens import checking
from orchestrator.goldens import golden as g
from orchestrator.printable import printable

all_of = g.all_of
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Told:
    """The same for people and for scripts."""

    lines: list[str]
    data: Any


def of_files(files: Sequence[Path]) -> Told:
    """Each golden: what it holds for, and why it was recorded, in order of time."""
    lines: list[str] = []
    data = []
    for file in files:
        golden = g.read(file)
        data.append(
            {
                "file": str(file),
                **golden.key.fields(),
                "steps": golden.steps,
                "leaves": len(golden.leaves),
                "environment": dict(golden.environment),
                "recordings": [vars(r) for r in golden.recordings],
            }
        )
        lines += [
            f"{file}",
            f"  holds for {golden.key.hardware}, torch {golden.key.torch}, mode {golden.key.mode}, "
            f"seed {golden.key.seed}, the first {golden.steps} steps of a configuration: {len(golden.leaves)} leaves",
            "  recorded with " + ", ".join(f"{k} {v}" for k, v in golden.environment.items()),
            *(f"  {r.date}  {(r.commit or r.tree or '-')[:12]}  {r.reason}" for r in golden.recordings),
        ]
    lines = [printable(line) for line in lines]
    return Told(lines=lines or ["there is no golden; foxrun golden record makes one"], data=data)


def of_run(run: Run, folder: Path) -> Told:
    """The golden of a run, or the nearest one with what differs."""
    key = g.key_of(run.manifest or {})
    found = checking.find(folder, key)
    if found is not None:
        told = of_files([found[0]])
        return Told(lines=[f"{run.label} is held against:", *told.lines], data={"golden": told.data[0], "fits": True})
    near = checking.nearest(folder, key)
    lines = [f"no golden fits {run.label}: {', '.join(f'{k} {v}' for k, v in key.fields().items() if k != 'inputs')}"]
    data: dict[str, Any] = {"fits": False, "key": key.fields(), "nearest": None}
    if near is not None:
        theirs, ours = near.golden.key.fields(), key.fields()
        lines.append(f"the nearest is {near.file}, which differs in")
        for name in near.fields:
            lines.append(f"  {name}: {theirs[name]}, the run has {ours[name]}")
        config = g.config_of(run.manifest or {})
        changed = [k for k in sorted({*config, *near.golden.config}) if config.get(k) != near.golden.config.get(k)]
        for name in changed[:_SHOWN]:
            lines.append(f"    {name}: {near.golden.config.get(name)}, the run has {config.get(name)}")
        if len(changed) > _SHOWN:
            lines.append(f"    and {len(changed) - _SHOWN} more parameters")
        data["nearest"] = {"file": str(near.file), "fields": list(near.fields), "parameters": changed}
    lines.append("foxrun golden record, with the same -p, makes one")
    return Told(lines=[printable(line) for line in lines], data=data)

"""Small real runs of the trainer, in this process or in one of their own, and what they wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.cli import settings

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"envs": "8", "width": "16", "window": "8", "state": "4", "capacity": "256", "book_rows": "400"}


@dataclass(frozen=True)
class Written:
    path: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.path / "run_manifest.json").read_text())

    @property
    def names(self) -> list[str]:
        return [leaf["name"] for leaf in json.loads((self.path / "leaves.json").read_text())["leaves"]]

    @property
    def bits(self) -> np.ndarray:
        """uint64 [rows, leaves]"""
        return np.fromfile(self.path / "bits.u64", dtype="<u8").reshape(-1, len(self.names))

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.path / "diag.jsonl").read_text().splitlines()]

    def column(self, name: str) -> np.ndarray:
        return self.bits[:, self.names.index(name)]

    def compared(self) -> dict[str, bytes]:
        """Every file that equal runs have equal."""
        return {
            item["name"]: (self.path / item["name"]).read_bytes() for item in self.manifest["files"] if item["compared"]
        }


def only_run(out: Path) -> Written:
    (path,) = [entry for entry in out.iterdir() if entry.is_dir()]
    return Written(path)


def arguments(out: Path, steps: int = 4, eval_steps: int = 2, mode: int = 1, seed: int = 7, **more: str) -> list[str]:
    return [
        "--out", str(out), "--steps", str(steps), "--eval-steps", str(eval_steps), "--mode", str(mode),
        "--seed", str(seed), "--parameters", json.dumps({**SMALL, **more}),
    ]  # fmt: skip


def run_here(out: Path, steps: int = 4, eval_steps: int = 2, leg: str = "", **more: Any) -> Written:
    """A run in this process."""
    from trainer.run import run
    from trainer.stopping import Stopping

    environment = {"FOXRUN_LEG": leg, "FOXRUN_TREE_RUN": ""}
    run(settings(arguments(out, steps, eval_steps, **more), environment), Stopping())
    return only_run(out)


def run_apart(
    given: Sequence[str], environment: Mapping[str, str] | None = None, timeout: float = 400.0
) -> subprocess.CompletedProcess[str]:
    """``python -m trainer`` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "trainer", *given],
        cwd=ROOT, env=clean_environment(environment), capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "FOXHUNT_", "ARGO_"))}
    return {**kept, **(more or {})}

"""Runs a program under the tracer and reads what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import foxrun
from foxrun.tracing.hashing import Hasher

SITE = Path(foxrun.__file__).parent / "tracing" / "site"
PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One traced run."""

    code: int
    stdout: str
    stderr: str
    out: Path

    def lines(self, name: str, process: str = "0") -> list[dict[str, Any]]:
        path = self.out / process / name
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    def events(self, process: str = "0") -> list[dict[str, Any]]:
        return sorted(self.lines("events.jsonl", process), key=lambda event: event["i"])

    def rows(self, process: str = "0") -> list[dict[str, Any]]:
        return self.lines("steps.jsonl", process)

    def file(self, name: str, process: str = "0") -> Any:
        return json.loads((self.out / process / name).read_text("utf-8"))

    def processes(self) -> list[str]:
        return sorted(path.name for path in self.out.iterdir())


def digits_of(data: bytes, size: int) -> str:
    """The fingerprint in rows and events of elements of ``size`` bytes: by Hasher's way for this machine."""
    bits = torch.frombuffer(bytearray(data), dtype={1: torch.uint8, 4: torch.int32, 8: torch.int64}[size])
    hasher = Hasher()
    slot = hasher.add(bits)
    return f"{hasher.resolve()[slot]:016x}"


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FOXRUN_", "PYTHON"))}
    return {**kept, "PYTHONPATH": str(SITE), "OMP_NUM_THREADS": "1", **more}


def plain(program: str | Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The program without a trace, with the tracer's site on its path all the same."""
    command = [sys.executable, str(PROGRAMS / program), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment(**more), timeout=300)


def traced(tmp_path: Path, program: str | Path, *words: str, plan: dict[str, Any] | None = None, **more: str) -> Traced:
    """The program under a plan; each call of a test takes a ``tmp_path`` of its own."""
    tmp_path.mkdir(parents=True, exist_ok=True)
    out = tmp_path / "trace"
    (tmp_path / "plan.json").write_text(json.dumps({"out": str(out), "level": "operations", **(plan or {})}))
    done = plain(program, *words, FOXRUN_TRACE=str(tmp_path / "plan.json"), **more)
    return Traced(code=done.returncode, stdout=done.stdout, stderr=done.stderr, out=out)


def script(tmp_path: Path, text: str) -> Path:
    """A program of a few lines."""
    tmp_path.mkdir(parents=True, exist_ok=True)
    path = tmp_path / "program.py"
    path.write_text(text)
    return path

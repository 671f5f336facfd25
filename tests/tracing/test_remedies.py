"""Remedies in torch hold against what the program sets later; each says what it does and what to write for good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foxrun.tracing.switches import SWITCHES
from tests.tracing.traced import traced

ROOT = Path(__file__).parents[2]
REMEDIES = [
    "seed-generators", "one-thread", "deterministic-algorithms-unfilled", "cudnn-deterministic", "no-tf32",
    "no-autotune", "synchronous-copies", "workers-seeded", "filled-memory",
]  # fmt: skip


def test_they_hold_against_the_program(tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []
    for name, fill in (("a", "85"), ("b", "170")):
        plan = {"level": "steps", "remedies": REMEDIES}
        poisoned = {"MALLOC_PERTURB_": fill, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        run = traced(tmp_path / name, "remedied.py", plan=plan, **poisoned)
        assert (run.code, run.stderr) == (0, "")
        found.append(json.loads(run.stdout))
    assert found[0] == found[1]
    held = found[0]
    assert held["threads"] == [1, "1"]
    assert (held["deterministic"], held["filled"]) == (True, False)
    assert held["cudnn"] == [False, True]
    assert held["precision"] == "highest"
    assert held["fresh"] == [[0.0, 0.0, 0.0], [0.0, 0.0], 0.0]
    assert held["copied"] == [1.0, 1.0]
    assert held["workers"][0] != held["workers"][1]


def test_the_page_says_what_each_does_and_whether_it_may_hide() -> None:
    page = (ROOT / "docs/tracing.md").read_text(encoding="utf-8")
    for name, switch in SWITCHES.items():
        assert f"| `{name}` | {switch.does} | `{switch.code}` | {'yes' if switch.hides else 'no'} |" in page


def test_the_design_names_the_same_remedies() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = text.partition("**Remedies** (")[2].partition("): `")[2].partition("`")[0].split()
    assert sorted(named) == sorted(SWITCHES)

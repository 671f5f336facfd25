"""What a mode costs: measured against mode 0 of the same round, as Markdown and JSON, printed by the trainer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from orchestrator.cost import Cost, Row, seconds_a_step, variants
from orchestrator.cost_table import markdown
from orchestrator.errors import UsageError
from tests.cli.conftest import Place

SMALL = ("-p", "envs=4", "-p", "width=16", "-p", "window=8", "-p", "head_dim=16", "-p", "capacity=64")


def timing(step: int, seconds: float, phase: str = "train") -> dict[str, object]:
    return {"step": step, "phase": phase, "steps": 10, "seconds": seconds}


def test_the_warm_up_and_the_evaluation_are_not_counted() -> None:
    rows = [timing(10, 9.0), timing(20, 0.5), timing(30, 0.3), timing(40, 7.0, "eval")]
    assert seconds_a_step(rows, 10) == pytest.approx(0.04)
    with pytest.raises(UsageError, match="no training steps after the warm-up"):
        seconds_a_step(rows, 30)


def test_mode_0_comes_first_and_the_bare_ones_last() -> None:
    assert [v.name for v in variants([0, 1, 3], bare=True)] == [
        "mode 0", "mode 1", "mode 3", "mode 1, no fingerprints", "mode 3, no fingerprints",
    ]  # fmt: skip
    assert [v.name for v in variants([2], bare=False)] == ["mode 0", "mode 2"]


def test_the_table_shows_median_and_spread_of_ratios_within_rounds() -> None:
    base = Row(name="mode 0", mode=0, fingerprints=False, seconds=[0.1, 0.2, 0.1], ratios=[1.0, 1.0, 1.0])
    one = Row(name="mode 1", mode=1, fingerprints=True, seconds=[0.11, 0.24, 0.13], ratios=[1.1, 1.2, 1.3])
    cost = Cost(
        rows=[base, one], rounds=3, steps=40, warm_up=10, environment={"gpu_name": "NVIDIA X", "torch": "2.11"},
        config={"envs": 128},
    )  # fmt: skip
    text = markdown(cost)
    assert "| mode 0 | 10.0 | 1.000 |  |\n| mode 1 | 7.7 | 1.200 | 1.100 to 1.300 |\n" in text
    assert "NVIDIA X; torch 2.11. envs 128. Medians of 3 rounds, interleaved, 30 of 40 steps counted." in text


def test_a_measured_figure_is_what_the_trainer_prints_at_start(here: Place) -> None:
    done = here("cost", "--modes", "1", "--rounds", "1", "--steps", "40", "--no-bare", *SMALL, "-o", "json")
    assert done.code == 0, done.err
    ratio = done.json["rows"][1]["ratio"]
    assert [row["name"] for row in done.json["rows"]] == ["mode 0", "mode 1"]
    parameters = dict(word.split("=") for word in SMALL[1::2])

    def printed(**changed: str) -> str:
        words = ["--out", str(here.directory / "run"), "--mode", "1", "--steps", "1"]
        command = [sys.executable, "-m", "trainer", *words, "--parameters", json.dumps({**parameters, **changed})]
        ran = subprocess.run(command, env=here.environ(), cwd=os.getcwd(), capture_output=True, text=True, check=True)  # noqa: PTH109
        return next(line for line in ran.stdout.splitlines() if "cost of the mode" in line)

    assert printed().endswith(f": {ratio:.3f} of mode 0's time ({ratio:.3f} to {ratio:.3f} in 1 rounds)")
    assert printed(envs="5").endswith(": not measured (foxrun cost measures it)")


def test_a_trainer_that_fails_or_writes_no_times_is_named(repo: Place) -> None:
    failed = repo("cost", "--rounds", "1", "-p", "end=7")
    assert (failed.code, "mode 0: the trainer ended with exit code 7: a last word" in failed.err) == (5, True)
    untimed = repo("cost", "--rounds", "1")
    assert (untimed.code, "no training steps after the warm-up" in untimed.err) == (2, True)
    assert repo("cost", "--modes", "7").code == 2

"""Whole localisations of small programs that know nothing of foxrun: real twins, real traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)


def localize(tmp_path: Path, source: str, *options: str, code: int) -> tuple[dict[str, Any], str]:
    (tmp_path / "program.py").write_text(source)
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--trials", "1", "-o", "json", *options]
    done = subprocess.run(
        [*command, "--", "python", "program.py"], cwd=tmp_path, env=dict(os.environ), text=True, capture_output=True
    )
    assert done.returncode == code, done.stderr
    return (json.loads(done.stdout) if done.stdout else {}), done.stderr


def test_an_unseeded_draw_in_a_program_without_torch(tmp_path: Path) -> None:
    source = "import random\nchosen = random.random()\nopen('out.txt', 'w').write(repr(chosen))\n"
    result, told = localize(tmp_path, source, "--no-remedies", "--report", "page.html", code=3)
    assert (result["found"], result["leaf"], result["step"]) == (True, "out.txt", 0)
    assert (result["operation"]["name"], result["operation"]["where"]) == ("random.random", "program.py:2 <module>")
    assert result["operation"]["source"] == "chosen = random.random()"
    assert [(cause["name"], cause["confidence"]) for cause in result["causes"][:1]] == [
        ("unseeded-generator", "certain")
    ]
    assert not (tmp_path / "out.txt").exists()  # each twin wrote into its own copy
    assert "localize: trial 1 of up to 3" in told
    assert "random.random" in (tmp_path / "page.html").read_text()


def test_a_program_that_does_the_same_each_time_is_clean_and_the_result_says_how_much_that_is_worth(
    tmp_path: Path,
) -> None:
    result, _ = localize(tmp_path, "open('out.txt', 'w').write('1')\n", code=0)
    assert (result["found"], result["runs"]) == (False, 3)
    assert result["rules_out"] == pytest.approx(1 - 0.05 ** (1 / 3))
    assert "no difference in 3 pairs of twins" in result["message"]


def test_a_program_that_fails_is_a_failed_job(tmp_path: Path) -> None:
    _, told = localize(tmp_path, "raise SystemExit('no data')\n", code=5)
    assert "the program failed: twin1 ended with exit code 1: no data" in told


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\ny = (\n", "'(' was never closed (program.py, line 2)"),
        ("input()\n", "twins have no standard input: give it a file"),
    ],
)
def test_a_failure_says_where_and_what_twins_have_not(tmp_path: Path, source: str, said: str) -> None:
    _, told = localize(tmp_path, source, code=5)
    assert said in told

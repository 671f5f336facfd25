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
    assert "localize: trial 1: twins that differ in all that must not matter" in told
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
        ("input()\n", "twins read no terminal and no pipe: give it a file"),
    ],
)
def test_a_failure_says_where_and_what_twins_have_not(tmp_path: Path, source: str, said: str) -> None:
    _, told = localize(tmp_path, source, code=5)
    assert said in told


def test_a_file_on_the_standard_input_is_read_by_each_twin_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nassert sys.stdin.read() == 'b\\nc\\n'\n")
    (tmp_path / "answers").write_text("a\nb\nc\n")
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--trials", "1", "--", "python", "program.py"]
    with (tmp_path / "answers").open("rb", buffering=0) as answers:
        assert answers.read(2) == b"a\n"
        done = subprocess.run(command, cwd=tmp_path, stdin=answers, text=True, capture_output=True)
        assert answers.read() == b"b\nc\n"  # a shell's loop that reads names from it goes on
    assert done.returncode == 0, done.stderr


def test_a_place_for_traces_that_cannot_be_made_is_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _, told = localize(tmp_path, "", "--out", str(tmp_path / "file" / "below"), code=2)
    assert f"--out {tmp_path / 'file' / 'below'} cannot be made: Not a directory" in told


def test_the_advice_names_where_a_set_is_walked_through(tmp_path: Path) -> None:
    source = "import random\nrandom.seed(1)\nnames = {'a', 'b', 'c', 'd', 'e', 'f'}\n"
    source += "for name in names:\n    open('out.txt', 'a').write(name + str(random.random()))\n"
    source += "import torch\nwhere = torch.tensor([ord(name) for name in names])\n"
    result, _ = localize(tmp_path, source, code=3)
    assert result["causes"][0]["name"] == "hash-order"
    advice = next(remedy["text"] for remedy in result["remedies"] if remedy["name"] == "code")
    assert "a set is walked through at program.py:7 (" in advice
    assert " and program.py:4 (`for name in names:`)" in advice


def test_a_file_counts_where_torch_ends_no_step(tmp_path: Path) -> None:
    """An evaluation, or the making of a data set: no optimizer steps, and what counts is what it wrote."""
    source = "import random, torch\nscores = torch.rand(3, generator=torch.Generator().manual_seed(1))\n"
    source += "open('scores.txt', 'w').write(repr(scores.tolist()) + repr(random.random()))\n"
    result, _ = localize(tmp_path, source, "--no-remedies", code=3)
    assert (result["leaf"], result["operation"]["name"]) == ("scores.txt", "random.random")
    assert result["operation"]["where"] == "program.py:3 <module>"


def test_what_is_printed_counts_where_no_step_is_seen_and_the_operations_part(tmp_path: Path) -> None:
    source = "import torch\nw = torch.rand(3)\nfor _ in range(3):\n    w = w - 0.1 * w.sin()\nprint(w.sum().item())\n"
    result, _ = localize(tmp_path, source, "--no-remedies", code=3)
    assert (result["leaf"], result["operation"]["where"]) == ("stdout", "program.py:2 <module>")
    assert result["causes"][0]["name"] == "unseeded-generator"


def test_a_time_that_is_printed_is_no_difference_where_the_operations_agree(tmp_path: Path) -> None:
    source = "import time, torch\nprint(torch.ones(3).sum().item())\nprint('number', time.time_ns())\n"
    result, _ = localize(tmp_path, source, code=0)
    assert result["found"] is False and "what they printed differs, and was not compared" in result["message"]

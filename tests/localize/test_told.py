"""What a person is told: numbers that were printed, failures that both twins share, commands that are no names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.localize.causes import CERTAIN, judge
from orchestrator.localize.conclusion import message
from orchestrator.localize.facts import Facts
from orchestrator.localize.result import Localization, Trial
from orchestrator.localize.steps import StepsFound

pytestmark = pytest.mark.timeout(300)
TRAINS = """
import random, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def localize(folder: Path, *words: str, source: str = "") -> tuple[int, str, str]:
    (folder / "train.py").write_text(TRAINS + source)
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", *words]
    done = subprocess.run(command, cwd=folder, env={**os.environ}, text=True, capture_output=True, timeout=280)
    return done.returncode, done.stdout, done.stderr


def test_what_parts_with_other_numbers_of_threads_alone_is_told_in_the_first_sentence() -> None:
    agreed = [Trial(number=n, pair="hostile") for n in (1, 2, 3)]
    parted = Trial(number=4, pair="threads", step=0, leaf="activation.1")
    text = message(Localization(found=True, step=0, leaf="activation.1", trials=[*agreed, parted]))
    assert text == (
        "the twins part at step 0 in activation.1 when they run with other numbers of threads, and not otherwise "
        "(3 pairs agreed)"
    )


def test_steps_that_were_cut_off_are_not_called_clean(tmp_path: Path) -> None:
    source = "for _ in range(5): step(torch.ones(8, 4))\n"
    code, out, _ = localize(tmp_path, "--trials", "1", "--steps", "2", "--", "python", "train.py", source=source)
    assert code == 0
    assert "what comes after step 1: --steps ended the program there" in out


def test_numbers_that_twins_print_apart_are_told_though_no_step_parts(tmp_path: Path) -> None:
    source = "step(torch.ones(8, 4))\nprint('took 3.1 s')\nprint('val score', random.SystemRandom().random())\n"
    code, out, _ = localize(tmp_path, "--trials", "1", "--", "python", "train.py", source=source)
    assert code == 0
    words = " ".join(out.split())
    assert "what they printed differs, and was not compared: 'val score 0." in words
    assert "write what counts into a file of FOXRUN_OUT" in words


def test_a_program_that_fails_in_both_twins_gets_its_remedy_all_the_same(tmp_path: Path) -> None:
    source = "for i in range(4):\n    step(torch.full((8, 4), random.random()))\n    assert i < 2, 'bad batch'\n"
    options = ("--replay", "0", "--trials", "1", "-o", "json")
    code, out, err = localize(tmp_path, *options, "--", "python", "train.py", source=source)
    assert code == 3, err
    result: dict[str, Any] = json.loads(out)
    remedies = [(item["name"], item["outcome"]) for item in result["remedies"] if item["name"] != "code"]
    assert remedies == [("seed-generators", "verified")]
    assert any("fails in both twins all the same (AssertionError: bad batch)" in note for note in result["notes"])


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (["train.py"], "'train.py' is no pair's name", "foxrun localize -- python train.py"),
        (["python", "train.py", "1"], "'python' is no pair's name", "foxrun localize -- python train.py 1"),
        (["--", "pyhton", "train.py"], "'pyhton' cannot be started", "check the command after --"),
    ],
)
def test_a_command_without_dashes_is_answered_with_the_command(
    tmp_path: Path, words: list[str], said: str, remedy: str
) -> None:
    code, out, err = localize(tmp_path, *words)
    assert (code, out) == (2, "")
    assert said in err and remedy in err


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (["--", ""], "the command after -- is empty", "foxrun localize -- python train.py"),
        (["--", "./plain"], "'./plain' cannot be started: it may not be executed", "python ./plain"),
        (["--", "plain"], "'plain' cannot be started: it is not on PATH", "name it as a file: ./plain"),
        (["--", "./nosuch"], "'./nosuch' cannot be started: there is no such file", "check the command after --"),
        (["--", "./script"], "the program cannot be started: ", "foxrun localize -- python "),
        (["--other", "nosuchcmd", "--", "python", "train.py"], "'nosuchcmd' cannot be started", "of --other"),
    ],
)
def test_what_cannot_be_started_is_told_with_advice_that_fits(
    tmp_path: Path, words: list[str], said: str, remedy: str
) -> None:
    (tmp_path / "plain").write_text("print(1)\n")
    (tmp_path / "script").write_text("print(1)\n")  # without a first line that says what runs it
    (tmp_path / "script").chmod(0o755)
    code, out, err = localize(tmp_path, *words)
    assert (code, out) == (2, "")
    assert said in err and remedy in err and "foxrun check" not in err


def test_another_command_that_fails_is_named_and_no_hostile_twin_blamed(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("")
    (tmp_path / "bad.py").write_text("raise SystemExit('no checkpoint')\n")
    code, _, err = localize(tmp_path, "--other", "python bad.py", "--", "python", "good.py")
    assert code == 5
    assert "twin2 ended with exit code 1: no checkpoint; it ran the command of --other: python bad.py" in err
    assert "hostile" not in err


def test_a_resumed_run_that_counts_from_nought_is_never_certain() -> None:
    late = Facts(steps=StepsFound(step=4, leaf="moment.w", kind="moment"), resumed=True)
    assert (judge(late)[0].name, judge(late)[0].confidence) == ("resume", CERTAIN)
    early = Facts(steps=StepsFound(step=0, leaf="weight.w", kind="weight"), resumed=True)
    assert (judge(early)[0].name, judge(early)[0].confidence) == ("resume", "likely")

"""Each fault does what its row of the table says: parts, ends, hangs, or leaves no whole summary."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainer.errors import UsageError
from trainer.faults import FAULTS, Fault, parse
from trainer.stopping import Stopped, Stopping

from .trainer_runs import ROOT, Written, arguments, clean_environment, only_run, run_apart, run_here

STEPS = 3


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return run_here(tmp_path_factory.mktemp("clean"), STEPS, 0)


def rows_that_differ(one: Written, two: Written) -> list[int]:
    return [i for i, row in enumerate((one.bits != two.bits).any(axis=1)) if row]


@pytest.mark.parametrize("name", ["unseeded-sampler", "listdir-order"])
def test_random_faults_part_every_time_from_their_step_on(tmp_path: Path, name: str) -> None:
    runs = [run_here(tmp_path / str(i), 5, 0, fault=f"{name}:2", envs="16") for i in range(3)]
    for i, one in enumerate(runs):
        for two in runs[:i]:
            assert rows_that_differ(one, two)[0] >= 2
            assert rows_that_differ(one, two)[-1] == 5


def test_time_seed_is_the_second_of_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000
    monkeypatch.setattr("trainer.faults.time.time", lambda: now + 0.9)
    one, two = (run_here(tmp_path / name, STEPS, 0, fault="time-seed") for name in "ab")
    now += 1
    three = run_here(tmp_path / "c", STEPS, 0, fault="time-seed")
    assert rows_that_differ(one, two) == []
    assert rows_that_differ(one, three)


def test_set_order_follows_the_hash_seed(tmp_path: Path) -> None:
    written = []
    for name, hash_seed in (("a", "1"), ("b", "2")):
        done = run_apart(arguments(tmp_path / name, STEPS, 0, fault="set-order"), {"PYTHONHASHSEED": hash_seed})
        assert done.returncode == 0, done.stderr
        written.append(only_run(tmp_path / name))
    assert rows_that_differ(*written)[0] == 0


def test_unset_memory_shows_when_memory_is_poisoned(tmp_path: Path) -> None:
    here = run_here(tmp_path / "here", STEPS, 0, fault="unset-memory")
    done = run_apart(arguments(tmp_path / "apart", STEPS, 0, fault="unset-memory"), {"MALLOC_PERTURB_": "170"})
    assert done.returncode == 0, done.stderr
    assert rows_that_differ(here, only_run(tmp_path / "apart"))


def test_a_swapped_sum_parts_in_the_cell(tmp_path: Path, clean: Written) -> None:
    swapped = run_here(tmp_path, STEPS, 0, fault="swapped-sum")
    assert rows_that_differ(clean, swapped)
    step = rows_that_differ(clean, swapped)[0]
    names = [n for n in clean.names if clean.column(n)[step] != swapped.column(n)[step]]
    assert names[0] == "act_encoder_output"


def test_a_fault_of_another_leg_is_no_fault(tmp_path: Path, clean: Written) -> None:
    here = run_here(tmp_path / "a", STEPS, 0, leg="a", fault="crash@b")
    assert rows_that_differ(clean, here) == []


def test_crash_leaves_its_rows_a_reason_and_one_line(tmp_path: Path) -> None:
    log = tmp_path / "termination"
    done = run_apart(arguments(tmp_path / "out", fault="crash:2"), {"FOXRUN_TERMINATION_LOG": str(log)})
    assert done.returncode == 1
    line = "trainer: RuntimeError: injected fault: crash at step 2"
    assert done.stderr.splitlines()[-1] == line and log.read_text() == line + "\n"
    written = only_run(tmp_path / "out")
    assert written.manifest["exit_reason"] == "failed: RuntimeError: injected fault: crash at step 2"
    assert written.bits.shape[0] == 2


def test_exit_137_leaves_no_manifest(tmp_path: Path) -> None:
    assert run_apart(arguments(tmp_path, fault="exit-137:1")).returncode == 137
    assert not list(tmp_path.glob("*/run_manifest.json"))


@pytest.mark.parametrize("name", ["no-summary", "empty-summary"])
def test_a_run_that_ends_well_without_a_result(tmp_path: Path, name: str) -> None:
    written = run_here(tmp_path, fault=name)
    assert written.manifest["exit_reason"] == "completed"
    summary = written.path / "eval_summary.json"
    assert summary.exists() == (name == "empty-summary")
    assert not summary.exists() or summary.read_bytes() == b""


def test_cut_summary(tmp_path: Path) -> None:
    assert run_apart(arguments(tmp_path, fault="cut-summary")).returncode == 137
    (path,) = tmp_path.glob("*/eval_summary.json")
    text = path.read_text()
    assert text.startswith("{") and not text.rstrip().endswith("}")
    assert not (path.parent / "run_manifest.json").exists()


def test_nan_spreads_and_the_files_stay_json(tmp_path: Path) -> None:
    written = run_here(tmp_path, fault="nan:1")
    assert written.rows[0]["metrics"]["loss"] != "NaN"
    assert written.rows[1]["metrics"]["loss"] == "NaN"
    assert written.rows[2]["checksums"]["vsn_w"] == "NaN"


def test_a_hanging_run_ends_on_a_signal_with_its_reason(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "trainer", *arguments(tmp_path, fault="hang:1")],
        cwd=ROOT, env=clean_environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "injected fault: hang at step 1\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM
    assert stderr == "trainer: terminated\n"
    written = only_run(tmp_path)
    assert written.manifest["exit_reason"] == "terminated"
    assert written.bits.shape[0] == 1


def test_a_signal_waits_for_a_write_and_counts_once() -> None:
    stopping = Stopping()
    with pytest.raises(Stopped, match="interrupted") as caught, stopping.held():
        stopping._arrived(signal.SIGINT, None)
        written = True
    assert written and caught.value.exit_code == 130
    stopping._arrived(signal.SIGTERM, None)  # ending already


@pytest.mark.parametrize("text", ["crash@b", "crash@b:3", "crash:3", "crash"])
def test_faults_are_parsed(text: str) -> None:
    fault = parse(text, leg="b", out=Path())
    assert fault == Fault(name="crash", step=3 if ":3" in text else 0)


@pytest.mark.parametrize(
    "text", ["explode", "crash@", "crash@z", "crash:x", "crash:-1", "@b", "🔥", '{"a":1}', "crash:1:2"]
)
def test_unknown_faults_are_refused_with_what_is_known(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, leg="a", out=Path())
    message = str(caught.value)
    assert "\n" not in message
    assert "twin1" in message or all(name in message for name in FAULTS)

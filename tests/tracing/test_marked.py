"""Marks, windows, stops, workers, dumps, and the replay of one operation on its dumped inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tracing.traced import Traced, environment, traced

WINDOW = {"first_step": 1, "last_step": 1, "stop_after": 2}


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return traced(tmp_path_factory.mktemp("forked"), "marked.py", "fork", plan=WINDOW)


@pytest.fixture(scope="module")
def dumped(forked: Traced, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program again, with the tensors of one event kept."""
    event = next(event for event in forked.events() if event["name"] == "aten.index_add_.default")
    plan = {**WINDOW, "dump": [["0", event["i"]]]}
    run = traced(tmp_path_factory.mktemp("dumped"), "marked.py", "spawn", plan=plan)
    assert run.code == 0
    return run.out / "0" / "dumps" / f"event-{event['i']}"


def test_the_program_stops_after_the_step_that_was_asked_for(forked: Traced) -> None:
    assert (forked.code, forked.stdout, forked.stderr) == (0, "0\n1\n", "")
    end = forked.file("end.json")
    assert (end["how"], end["steps"], end["troubles"]) == ("stopped", 3, {})


def test_marks_end_steps_and_names_are_those_that_were_given(forked: Traced) -> None:
    rows = forked.rows()
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    for row in rows[:3]:
        leaves = {leaf[0]: leaf[2] for leaf in row["leaves"]}
        assert leaves["carry"] == leaves["generator.shuffle"] == "state"
        assert leaves["loss"] == "outcome"
    assert len({leaf[3] for row in rows for leaf in row["leaves"] if leaf[0] == "carry"}) == 4


def test_operations_are_those_of_the_window_and_seeds_those_of_the_whole_program(forked: Traced) -> None:
    events = forked.events()
    assert {event["step"] for event in events if event["kind"] == "op"} == {1}
    assert [event["value"] for event in events if event["name"] == "torch.manual_seed"] == ["3"]
    outside = [source for event in events for _, _, source in event["ins"] if source == -1]
    assert outside


def test_a_worker_has_its_own_folder_with_its_seeds(forked: Traced) -> None:
    assert forked.processes() == ["0", "0.1"]
    seeds = [event["name"] for event in forked.events("0.1") if event["kind"] == "seed"]
    assert seeds[:2] == ["random.seed", "torch.manual_seed"]
    assert forked.file("header.json", "0.1")["process"] == "0.1"


def replay(dump: Path, *words: str) -> tuple[int, dict[str, object]]:
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "foxrun.tracing.replay", str(dump), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(PYTHONPATH=root), timeout=300)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_dumped_operation_runs_alone_and_gives_the_bits_that_were_recorded(dumped: Path) -> None:
    about = json.loads((dumped / "event.json").read_text())
    assert about["name"] == "aten.index_add_.default"
    code, found = replay(dumped, "--runs", "3", "--threads", "1,2")
    assert code == 0
    assert (found["parted"], found["max_ulp"], found["max_abs"]) == (0, 0, 0.0)
    from foxrun import fingerprint

    data = (dumped / about["outs"][0][1]["file"]).read_bytes()
    prints = [f"{fingerprint(data, 4):016x}"]
    assert found["prints"] == prints
    assert found["threads"] == {"1": prints, "2": prints}
    assert found["allocations"] == [prints, prints]


def test_what_cannot_run_alone_says_so(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps({"name": "autograd.Mine", "args": [], "kwargs": {}}))
    code, found = replay(tmp_path)
    assert (code, found) == (
        1,
        {"unsupported": "autograd.Mine is the program's own kernel: it runs only inside the program"},
    )
    code, found = replay(tmp_path / "nowhere")
    assert code == 1
    assert "no dump of an event" in str(found["unsupported"])

"""The gate with a trainer that takes one value from where it must not: what is found, how it is said, and the exit."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from orchestrator import narrowing
from orchestrator.causes import BY_HOSTILITY, FILES
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import UsageError
from orchestrator.gate import hostilities, run_gate, write_termination_log
from orchestrator.hostile import HOSTILITIES
from orchestrator.twin_run import GateRequest, Listener

TRAINER = Path(__file__).parent / "small_trainer.py"


@pytest.fixture
def request_(tmp_path: Path) -> GateRequest:
    return GateRequest(
        trainer=("python", str(TRAINER)), out=tmp_path / "gate", seed=7, mode=1, steps=4, timeout_s=300.0
    )


def gate(
    request: GateRequest, tmp_path: Path, *, explain: bool = False, listener: Listener | None = None, **parameters: str
) -> Verdict:
    folder = tmp_path / "listed"
    folder.mkdir(exist_ok=True)
    for name in ("1", "2", "3"):
        (folder / name).touch()
    environ = {**os.environ, "SMALL_TRAINER_FOLDER": str(folder)}
    request = dataclasses.replace(request, parameters=parameters)
    return run_gate(request, environ, listener, directory=tmp_path, explain=explain)


def without_delay(request: GateRequest) -> GateRequest:
    """Twins that need not wait for the clock to tick, which would take most of the test's time."""
    return dataclasses.replace(request, hostilities=tuple(name for name in HOSTILITIES if name != "clock"))


def test_an_exact_trainer_passes(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(request_, tmp_path)
    assert (verdict.verdict, verdict.exit_code, verdict.subject) == ("identical", 0, "gate")
    assert verdict.agreed is not None and (verdict.agreed.rows, verdict.agreed.leaves) == (5, 2)


@pytest.mark.parametrize(
    "source",
    ["urandom", "hash-seed", "clock", "listing-order", "scandir", "iterdir", "glob", "walk", "environment-order",
     "directories", "memory", "poison"],
)  # fmt: skip
def test_whatever_must_not_matter_and_does_parts_the_twins(request_: GateRequest, tmp_path: Path, source: str) -> None:
    verdict = gate(without_delay(request_) if source != "clock" else request_, tmp_path, source=source)
    assert (verdict.verdict, verdict.exit_code) == ("gate_failed", 4)
    assert verdict.first_divergence is not None
    assert (verdict.first_divergence.step, verdict.first_divergence.leaf) == (2, "w")
    assert verdict.message.startswith("the gate's twins parted at step 2 in leaf w; likely cause: ")
    reproduction = f"foxrun check --seed 7 --mode 1 --steps 4 -p source={source} -- python {TRAINER}"
    parameters = shlex.quote(json.dumps({"source": source}))
    located = f"foxrun localize -- python {TRAINER} --out '{{out}}' --seed 7 --mode 1 --steps 4 --eval-steps 0"
    assert verdict.next == (
        f"`{reproduction}` makes it again; `{located} --parameters {parameters}` finds the operation, the cause and a "
        "remedy; mend it, and check again"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("urandom", "cause: the twins part even when nothing differs that can be set"),
        ("hash-seed", "cause: the order of a set of strings"),
        ("memory", "cause: memory is read before it is set"),
        ("environment-order", "cause: the order of the environment's variables"),
    ],
)
def test_the_cause_is_measured_by_leaving_differences_out(
    request_: GateRequest, tmp_path: Path, source: str, said: str
) -> None:
    verdict = gate(without_delay(request_), tmp_path, explain=True, source=source)
    assert f"; {said}" in verdict.message
    assert verdict.notes[-1].endswith("parted)")


def test_a_file_that_only_one_twin_wrote_is_no_matter_of_a_generator(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(without_delay(request_), tmp_path, explain=True, end="no-summary@twin2")
    assert (verdict.verdict, verdict.exit_code) == ("gate_failed", 4)
    assert verdict.message == (
        f"the gate's twins parted in eval_summary.json, which only one of them wrote; cause: {FILES}"
    )
    assert " --steps 4 " in verdict.next


def test_a_search_that_gets_no_further_names_what_is_left(
    request_: GateRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third trial finds no time; what the first two measured still says more than a guess by the leaf's name."""
    moments = iter([0.0, 1.0, 2.0, 1e9])
    monkeypatch.setattr(narrowing, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    verdict = gate(without_delay(request_), tmp_path, explain=True, source="hash-seed")
    left = "; ".join(BY_HOSTILITY[name] for name in ("memory", "listing-order", "hash-seed"))
    assert verdict.message == f"the gate's twins parted at step 2 in leaf w; cause: one or more of these: {left}"
    said = "nothing that can be set: agreed; memory, listing-order, hash-seed: parted"
    assert verdict.notes[-1] == f"2 trials of twins that differ in less ({said})"


def test_mode_0_runs_in_mode_3_and_says_so(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(dataclasses.replace(request_, mode=0), tmp_path)
    assert [run.mode for run in verdict.runs] == [3, 3]
    assert any("mode 0 promises nothing, so the gate ran in mode 3" in note for note in verdict.notes)


def test_failed_twins_are_named_in_order_of_time(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(request_, tmp_path, end="message")
    assert (verdict.verdict, verdict.exit_code) == ("job_failed", 5)
    assert verdict.message.startswith(
        "the trainer failed in the gate: twin1: exit code 1: the learning rate is negative"
    )
    assert verdict.parts[0].name == "twin1"


def test_a_killed_twin_is_not_called_out_of_memory(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(request_, tmp_path, end="killed@twin2")
    assert [(part.name, part.exit_code) for part in verdict.parts] == [("twin2", 137)]
    assert "twin2: exit code 137 (killed by SIGKILL; nothing says that memory ran out)" in verdict.message
    assert "only the hostile twin failed" in verdict.message


def test_the_last_line_of_the_log_explains_where_nothing_else_does(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(request_, tmp_path, end="3@twin2")
    assert verdict.parts[0].message == "a last word"
    assert (request_.out / "twin2.log").read_text().splitlines() == ["small trainer, leg twin2", "a last word"]


def test_a_hang_ends_at_the_deadline_and_leaves_no_process(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(dataclasses.replace(request_, timeout_s=4.0), tmp_path, end="hang")
    assert (verdict.verdict, verdict.exit_code) == ("infrastructure", 6)
    # A busy machine may not have brought a twin to its first step in that time.
    stood = r"the gate did not end within 4 s: twin1 at step [01] of 4, twin2 at step [01] of 4"
    assert re.fullmatch(stood, verdict.message)
    assert processes_that_mention(request_.out) == []


def test_exit_0_without_a_run_is_no_result(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(request_, tmp_path, end="nothing")
    assert (verdict.verdict, verdict.exit_code) == ("job_failed", 5)
    assert verdict.message == (
        "no result: twin1 and twin2 ended with exit code 0 and wrote no run directory under --out"
    )


def test_a_command_that_is_not_there_says_what_to_give(request_: GateRequest, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the trainer cannot be started: no-such-program"):
        run_gate(dataclasses.replace(request_, trainer=("no-such-program",)), os.environ, directory=tmp_path)


def test_an_output_directory_is_never_written_over(request_: GateRequest, tmp_path: Path) -> None:
    (request_.out / "twin1").mkdir(parents=True)
    with pytest.raises(UsageError, match="twin1 is there already"):
        gate(request_, tmp_path)


def test_an_unknown_difference_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="'hash-sed'; did you mean 'hash-seed'"):
        hostilities(["hash-sed"])
    assert hostilities(["memory", "clock"]) == ("clock", "memory")


def test_progress_and_lines_are_told_while_it_runs(request_: GateRequest, tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    lines: list[tuple[str, str]] = []
    listener = Listener(progress=lambda *p: progress.append(p), line=lambda *line: lines.append(line))
    gate(request_, tmp_path, listener=listener)
    assert ("twin1", 4, 4) in progress and ("twin2", 4, 4) in progress
    assert lines == [("twin1", "small trainer, leg twin1"), ("twin2", "small trainer, leg twin2")]


def test_the_twins_die_with_a_gate_that_is_killed(request_: GateRequest, tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from orchestrator.gate import run_gate; "
        "from orchestrator.twin_run import GateRequest; "
        f"run_gate(GateRequest(trainer=('python', {str(TRAINER)!r}), out=Path({str(request_.out)!r}), seed=1, mode=1, "
        "steps=4, parameters={'end': 'hang'}), os.environ)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    try:
        wait_for(lambda: len(processes_that_mention(request_.out / "twin2")) == 1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(lambda: processes_that_mention(request_.out / "twin") == [])


def test_the_message_of_the_node_holds_step_leaf_and_what_to_do(request_: GateRequest, tmp_path: Path) -> None:
    verdict = gate(request_, tmp_path, source="poison")
    file = tmp_path / "termination-log"
    write_termination_log(verdict, {"FOXRUN_TERMINATION_LOG": str(file)})
    assert file.read_text() == f"{verdict.message}. Next: {verdict.next}"
    write_termination_log(dataclasses.replace(verdict, message="é" * 5000), {"FOXRUN_TERMINATION_LOG": str(file)})
    assert file.read_text() == "é" * 2048


def processes_that_mention(path: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            # The trainer is called with this path as an argument of its own; the gate itself names it inside a script.
            if any(word.startswith(str(path)) for word in process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def wait_for(condition: object, seconds: float = 240.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)

"""The legs of a workflow: which failed first, how, and what an exit code of 0 without a result is worth."""

from pathlib import Path

import pytest

from benchmarks.synthetic import manifest_of
from orchestrator.compare.policy import Options
from orchestrator.comparison import compare
from tests.compare.runs import SUMMARY, edit_json, make


def options(a: str = "Succeeded", b: str = "Succeeded") -> Options:
    return Options(status_a=a, status_b=b)


def test_two_legs_that_succeeded_are_compared(tmp_path: Path) -> None:
    assert compare(make(tmp_path / "a"), make(tmp_path / "b"), options()).verdict == "identical"


def test_a_failed_leg_is_named_with_its_reason(tmp_path: Path) -> None:
    b = make(tmp_path / "b", rows=2, summary=None, finish="failed: crash at step 2")
    verdict = compare(make(tmp_path / "a"), b, options(b="Failed"))
    assert (verdict.verdict, verdict.exit_code) == ("job_failed", 5)
    assert verdict.message == "leg-b failed: crash at step 2"
    assert [(part.name, part.phase) for part in verdict.parts] == [("leg-b", "Failed")]


def test_the_leg_that_failed_first_comes_first(tmp_path: Path) -> None:
    a = make(tmp_path / "a", summary=None, finish="failed: stopped since the other leg failed")
    b = make(tmp_path / "b", summary=None, finish="failed: the cause")
    edit_json(a / "run_manifest.json", lambda m: m["times"].update(finished="2024-05-01T10:00:09.000Z"))
    edit_json(b / "run_manifest.json", lambda m: m["times"].update(finished="2024-05-01T10:00:01.000Z"))
    verdict = compare(a, b, options("Failed", "Failed"))
    assert [part.name for part in verdict.parts] == ["leg-b", "leg-a"]
    assert verdict.message.startswith("leg-b failed: the cause; then leg-a")


def test_a_leg_that_wrote_nothing_has_failed_even_with_exit_0(tmp_path: Path) -> None:
    verdict = compare(make(tmp_path / "a"), tmp_path / "never-written", options())
    assert verdict.exit_code == 5
    assert verdict.message == "leg-b failed: exit 0 without a result: there is no such directory".replace(
        "leg-b failed", "leg-b succeeded"
    )


def test_a_leg_without_the_summary_that_it_owed_has_no_result(tmp_path: Path) -> None:
    manifest = manifest_of(43)
    manifest["config"] = {**manifest["config"], "eval_steps": 20}
    a = make(tmp_path / "a", manifest=manifest)
    b = make(tmp_path / "b", manifest=manifest, summary=None)
    verdict = compare(a, b, options())
    assert verdict.exit_code == 5
    assert "exit 0 without a result: no eval_summary.json" in verdict.message
    assert compare(a, b).exit_code == 7


@pytest.mark.parametrize("text", ["", "{}", '{"total_pnl_usd": 12'])
def test_an_empty_or_cut_summary_is_no_result(tmp_path: Path, text: str) -> None:
    b = make(tmp_path / "b", summary=None)
    (b / "eval_summary.json").write_text(text)
    verdict = compare(make(tmp_path / "a"), b, options())
    assert verdict.exit_code == 5
    assert "eval_summary.json is empty or unreadable" in verdict.message


def test_a_summary_cut_by_a_kill_is_incomplete_by_hand_and_a_failed_job_in_a_workflow(tmp_path: Path) -> None:
    b = make(tmp_path / "b", summary=None, finish=None)
    (b / "eval_summary.json").write_text('{"total_pnl_usd": 12')
    a = make(tmp_path / "a", summary=SUMMARY)
    assert compare(a, b, options(b="Failed")).exit_code == 5
    assert compare(a, b).exit_code == 7


def test_a_leg_that_never_started_says_so(tmp_path: Path) -> None:
    verdict = compare(tmp_path / "a", tmp_path / "b", options("Omitted", "Omitted"))
    assert verdict.exit_code == 5
    assert "leg-a omitted: it never started" in verdict.message


def test_trouble_of_the_node_is_infrastructure_and_comes_before_a_failed_job(tmp_path: Path) -> None:
    a = make(tmp_path / "a", finish="failed: crash")
    verdict = compare(a, tmp_path / "b", options("Failed", "Error"))
    assert (verdict.verdict, verdict.exit_code) == ("infrastructure", 6)


def test_a_manifest_that_tells_of_failure_is_believed_by_hand_too(tmp_path: Path) -> None:
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", rows=3, finish="failed: disk full"))
    assert verdict.exit_code == 5
    assert "disk full" in verdict.message


def test_only_a_reason_that_says_so_makes_it_out_of_memory(tmp_path: Path) -> None:
    a = make(tmp_path / "a")
    killed = compare(a, make(tmp_path / "b", finish="killed by signal 9"), options(b="Failed"))
    assert killed.parts[0].reason == ""
    oom = compare(a, make(tmp_path / "c", finish="OOMKilled"), options(b="Failed"))
    assert oom.parts[0].reason == "OOMKilled"

"""What a person reads when something failed leads somewhere: the part's log, by the workflow's own name."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.compare import verdict as v
from orchestrator.runnable import outside, workflow_of_pod
from orchestrator.settings import load_settings
from tests.cli.conftest import Place


def test_a_trainer_that_fails_in_the_gate_is_read_by_the_workflows_log(repo: Place) -> None:
    done = repo("submit", "--regression-pair", "--name", "broken", "-p", "end=message", "-o", "json")
    assert done.code == 5
    assert done.json["next"] == "read what they wrote: `foxrun logs broken --node gate`"
    assert "/foxrun/out" not in done.json["message"] + done.json["next"]
    log = repo("logs", "broken", "--node", "gate").out
    assert "gate: twin1: small trainer, leg twin1\n" in log


def test_parts_that_failed_alike_are_one_line() -> None:
    said = [v.Part(name=name, phase="Failed", exit_code=1, message="no such field: env") for name in ("twin1", "twin2")]
    other = v.Part(name="leg-a", phase="Error", message="pod deleted")
    lines = v.lines(v.make(v.JOB_FAILED, "both", parts=[*said, other]))
    assert [line for line in lines if line.startswith("failed: ")] == [
        "failed: twin1 and twin2: exit code 1: no such field: env",
        "failed: leg-a: Error: pod deleted",
    ]


def test_a_leg_that_failed_by_itself_is_mended_and_not_retried(repo: Place) -> None:
    done = repo("submit", "--regression-pair", "--no-gate", "--name", "broken", "-p", "end=message@b", "-o", "json")
    assert done.code == 5
    assert done.json["next"] == "`foxrun logs broken --node leg-b`; mend what it names, and submit again"


def test_the_local_engine_shows_no_image_which_it_does_not_run(repo: Place) -> None:
    assert repo("submit", "--worktree", "--no-gate", "--name", "one").code == 0
    shown = repo("get", "one").out
    assert "  seed:" in shown
    assert "image:" not in shown


def test_the_report_names_its_workflow(repo: Place) -> None:
    done = repo("submit", "--worktree", "--regression-pair", "--no-gate", "--name", "one", "-o", "json")
    assert done.json["workflow"] == "one"
    page = Path(done.json["report"]).read_text("utf-8")
    assert '<span>workflow <span class="mono">one</span></span>' in page


def test_what_a_pod_tells_people_names_the_workflow_and_no_path_of_the_pod(repo: Place, tmp_path: Path) -> None:
    done = repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom", "-o", "json")
    runs = [str(run["label"]) for run in done.json["runs"]]
    message, page, file = tmp_path / "message", tmp_path / "report.html", tmp_path / "verdict.json"
    pod = {"ARGO_NODE_ID": "nightly-main-x7k2p-3844244429", "FOXRUN_TERMINATION_LOG": str(message)}
    statuses = ("--status-a", "Succeeded", "--status-b", "Succeeded")
    assert repo("compare", *runs, *statuses, "--report", str(page), "--verdict", str(file), **pod).code == 3
    for text in (message.read_text(), page.read_text()):
        assert "foxrun localize nightly-main-x7k2p" in text
        assert "foxrun report nightly-main-x7k2p" in text
        assert f"foxrun localize {runs[0]}" not in text and f"foxrun compare {runs[0]}" not in text
    # Who reads verdict.json knows where the runs lie now, and puts those places in the places of these.
    assert f"foxrun compare {runs[0]}/" in json.loads(file.read_text())["next"]


def test_commands_outside_of_a_pod_stay_as_they_are() -> None:
    text = "`foxrun localize a b` or `foxrun compare a b --report report.html`; `foxrun logs NAME --node gate`"
    assert outside(text, "") == text
    assert outside(text, "one") == "`foxrun localize one` or `foxrun report one`; `foxrun logs one --node gate`"
    assert [workflow_of_pod({"ARGO_NODE_ID": node}) for node in ("a-b-1", "", "a")] == ["a-b", "", ""]


def test_options_that_led_to_the_cluster_are_told_from_settings(tmp_path: Path) -> None:
    flags = {"engine": "argo", "namespace": "ml", "context": None}
    here = load_settings(tmp_path, {"FOXRUN_CONTEXT": "staging"}, flags)
    assert here.given("engine", "context", "namespace") == ("--engine", "argo", "--namespace", "ml")

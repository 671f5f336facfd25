"""From a Workflow's status and its parts' verdicts to one verdict: precedence, order of time, and nothing hidden."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.compare import verdict as v
from orchestrator.outcome import outcome


def pod(
    name: str, phase: str, *, code: int | None = None, message: str = "", second: int = 0, **more: Any
) -> dict[str, Any]:
    return {
        "type": "Pod", "name": f"w.{name}", "displayName": name, "phase": phase, "message": message,
        "outputs": {"exitCode": str(code)} if code is not None else {},
        "startedAt": "2030-01-01T00:00:00Z", "finishedAt": f"2030-01-01T00:00:{second:02}Z", **more,
    }  # fmt: skip


def workflow(phase: str, *nodes: dict[str, Any], kind: str = "regression-pair", message: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": "w", "labels": {"foxrun.dev/kind": kind}},
        "status": {"phase": phase, "message": message, "nodes": {n["displayName"]: n for n in nodes}},
    }


IDENTICAL = v.as_dict(v.make(v.IDENTICAL, "all agree"))
DRIFT = v.as_dict(v.make(v.DRIFT, "they part"))
GATE = v.as_dict(v.make(v.GATE_FAILED, "the twins parted", subject="gate"))
GATE_AGREES = v.as_dict(v.make(v.IDENTICAL, "the twins agree", subject="gate"))


@pytest.mark.parametrize(
    ("status", "verdicts", "verdict", "code"),
    [
        (workflow("Succeeded", pod("compare", "Succeeded", code=0)), {"compare": IDENTICAL}, "identical", 0),
        (workflow("Failed", pod("compare", "Failed", code=3)), {"compare": DRIFT}, "drift", 3),
        (workflow("Failed", pod("gate", "Failed", code=4)), {"gate": GATE}, "gate_failed", 4),
        (workflow("Failed", pod("gate", "Failed", code=4)), {}, "gate_failed", 4),
        (workflow("Failed", pod("gate", "Failed", code=7)), {}, "incomparable", 7),
        (workflow("Failed", pod("gate", "Failed", code=1)), {}, "infrastructure", 6),
        (workflow("Failed", pod("leg-a", "Failed", code=1), pod("compare", "Failed", code=3)), {"compare": DRIFT},
         "job_failed", 5),
        (workflow("Failed", pod("leg-a", "Failed", code=3)), {}, "job_failed", 5),
        (workflow("Failed", pod("leg-a", "Error", message="pod deleted"), pod("leg-b", "Failed", code=1)), {},
         "infrastructure", 6),
        (workflow("Failed", pod("leg-a", "Failed", message="Pod was active longer than the specified deadline")), {},
         "infrastructure", 6),
        (workflow("Error", message="the local engine was killed"), {}, "infrastructure", 6),
        (workflow("Error", message="the local engine was killed"), {"gate": GATE_AGREES}, "infrastructure", 6),
        (workflow("Failed", message="Stopped with strategy 'Stop'"), {}, "job_failed", 5),
        (workflow("Succeeded"), {}, "job_failed", 5),
        (workflow("Succeeded"), {"gate": GATE_AGREES}, "job_failed", 5),
        (workflow("Succeeded"), {"compare": {"verdict": "fine"}}, "incomplete", 7),
        (workflow("Succeeded", kind="train"), {"gate": GATE_AGREES}, "identical", 0),
        (workflow("Succeeded", kind="train"), {}, "succeeded", 0),
    ],
)  # fmt: skip
def test_the_table(status: dict[str, Any], verdicts: dict[str, Any], verdict: str, code: int) -> None:
    found = outcome(status, verdicts)
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert found.message and (found.next or code in (0, 3, 4, 7))


def test_the_first_to_fail_is_not_hidden_by_the_last() -> None:
    found = outcome(
        workflow(
            "Failed",
            pod("leg-b", "Failed", code=137, message="Error (exit code 137)", second=9),
            pod("leg-a", "Failed", code=1, message="main: Error (exit code 1): no such column: price", second=4),
            pod("leg-c", "Failed", code=137, message="OOMKilled (exit code 137)", second=12),
        )
    )
    assert found.message == (
        "workflow w: first leg-a: exit code 1: no such column: price; "
        "then leg-b: exit code 137 (killed by SIGKILL; nothing says that memory ran out); "
        "then leg-c: out of memory (OOMKilled, exit code 137): OOMKilled (exit code 137)"
    )
    assert [(part.name, part.exit_code) for part in found.parts] == [("leg-a", 1), ("leg-b", 137), ("leg-c", 137)]


def test_parts_that_were_stopped_are_no_failure_of_theirs() -> None:
    said = "Stopped with strategy 'Stop'"
    found = outcome(
        workflow("Failed", pod("leg-a", "Failed", code=143, message=said), pod("leg-b", "Failed", message=said))
    )
    assert (found.verdict, found.message, found.next) == (
        "job_failed", "workflow w was stopped: leg-a, leg-b had not ended", "`foxrun retry w`",
    )  # fmt: skip


def test_an_attempt_that_a_retry_made_good_has_not_failed() -> None:
    found = outcome(
        workflow(
            "Succeeded",
            {"type": "Retry", "displayName": "leg-a", "phase": "Succeeded", "children": ["leg-a(0)", "leg-a(1)"]},
            pod("leg-a(0)", "Error", message="pod deleted"),
            pod("leg-a(1)", "Succeeded", code=0),
        ),
        {"compare": IDENTICAL},
    )
    assert (found.verdict, found.parts) == ("identical", [])


def test_a_failing_alert_changes_no_verdict_and_is_reported() -> None:
    handler = pod("w.onExit", "Failed", code=1, message="no route to host") | {"name": "w.onExit"}
    found = outcome(workflow("Failed", pod("compare", "Succeeded", code=0), handler), {"compare": IDENTICAL})
    assert (found.verdict, found.notes) == (
        "identical",
        ["the alert failed, which changes no verdict: no route to host"],
    )


def test_a_compare_that_says_why_keeps_its_words() -> None:
    said = v.as_dict(v.make(v.JOB_FAILED, "leg-b succeeded: exit 0 without a result", next="see its log"))
    found = outcome(workflow("Failed", pod("compare", "Failed", code=5)), {"compare": said})
    assert (found.message, found.next) == ("leg-b succeeded: exit 0 without a result", "see its log")


def test_a_workflow_that_runs_has_no_outcome() -> None:
    with pytest.raises(ValueError, match="workflow w is Running, not completed"):
        outcome(workflow("Running"))

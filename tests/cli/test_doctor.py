"""The doctor, version and the alert of the exit handler."""

from __future__ import annotations

import json

from tests.alerts.receivers import webhook
from tests.cli.conftest import Place


def test_a_machine_that_runs_these_tests_is_well(repo: Place) -> None:
    done = repo("doctor", "-o", "json")
    states = {finding["part"]: finding["state"] for finding in done.json}
    assert done.code == 0
    parts = ("python", "torch", "git", "home", "disk", "malloc", "clock", "alerts")
    assert [(part, states[part]) for part in parts] == [(part, "ok") for part in parts]
    assert all(finding["remedy"] for finding in done.json if finding["state"] != "ok")


def test_what_is_broken_is_named_with_its_remedy_and_without_secrets(here: Place) -> None:
    here.home.write_text("in the way")
    done = here("doctor", FOXRUN_ALERTS="nonsense://token", PYTHONHASHSEED="0")
    assert done.code == 6
    lines = done.out.splitlines()
    broken = [line.split()[1] for line in lines if line.startswith("broken")]
    assert broken == ["home", "alerts"]
    assert "         -> set FOXRUN_HOME to a directory you may write" in lines
    assert "token" not in done.out and "nonsense://***" in done.out
    assert any(line.startswith("warning  environment") and "PYTHONHASHSEED" in line for line in lines)


def test_version_for_people_and_scripts(here: Place) -> None:
    found = here("version", "-o", "json").json
    assert found["run_contract"] == "1" and found["foxrun"] == here("version", "--short").out.strip()


def test_the_exit_handler_names_the_part_that_failed_first(here: Place) -> None:
    def failed(name: str, message: str, second: int, template: str = "leg") -> dict[str, str]:
        time = f"2030-01-01T00:00:{second:02}Z"
        return {
            "displayName": name,
            "templateName": template,
            "phase": "Failed",
            "message": message,
            "finishedAt": time,
        }

    failures = [
        failed("w", "", 9, template="main"),
        failed("leg-b", "retryStrategy.expression evaluated to false", 8),
        failed("leg-b(0)", "main: Error (exit code 137)", 8),
        failed("leg-a(0)", "main: Error (exit code 1): no data", 5),
    ]
    # Argo quotes the list once more, since it is the value of a parameter.
    quoted = json.dumps(json.dumps(failures))
    words = ["alert", "--verdict", "absent.json", "--workflow", "w", "--status", "Failed", "--failures", quoted]
    with webhook() as receiver:
        done = here(*words, FOXRUN_ALERTS=f"json://u:secret@127.0.0.1:{receiver.port}/")
    assert (done.code, done.out) == (0, "alert sent to json\n")
    [(_, _, body)] = receiver.received
    assert body["foxrun"]["message"] == (
        "workflow w: first leg-a: exit code 1: no data; "
        "then leg-b: exit code 137 (killed by SIGKILL; nothing says that memory ran out)"
    )


def test_a_failing_alert_exits_0_and_is_reported_without_its_secret(here: Place) -> None:
    done = here("alert", "--workflow", "w", "--status", "Error", "--to", "nonsense://token")
    assert done.code == 0
    assert done.out.startswith("alert to nonsense://*** failed") and "token" not in done.out


def test_good_news_is_told_only_when_asked(here: Place) -> None:
    verdict = {"verdict": "identical", "exit_code": 0, "message": "all agree", "subject": "pair"}
    (here.directory / "v.json").write_text(json.dumps(verdict))
    words = ["alert", "--verdict", "v.json", "--workflow", "w", "--status", "Succeeded"]
    assert here(*words).out == "no alert: identical\n"
    with webhook() as receiver:
        done = here(*words, "--always", "--to", f"json://127.0.0.1:{receiver.port}/")
    assert done.out == "alert sent to 1 of 1 channel: identical\n"
    assert here("alert", "--status", "Succeeded").out == "no alert: succeeded\n"

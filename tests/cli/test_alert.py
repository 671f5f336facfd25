"""`foxrun alert` as a person and as an exit handler call it: whatever goes wrong is said, and the exit code is 0."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.alert_text import AlertContext
from orchestrator.compare.verdict import RunSummary, as_dict
from orchestrator.run_context import merged, of_event, of_workflow
from tests.alerts.receivers import webhook
from tests.alerts.test_alerts import VERDICT
from tests.cli.conftest import Place
from tests.hosts.servers import TOKEN, host


def verdict_file(place: Place) -> str:
    file = place.directory / "verdict.json"
    file.write_text(json.dumps(as_dict(VERDICT)))
    return str(file)


def handler(place: Place, *words: str, **variables: str) -> Any:
    facts = ["--workflow", "w-1", "--status", "Failed", "--failures", '"null"', "--kind", "ci-gate", "--sha", "a" * 40]
    return place("alert", "--verdict", verdict_file(place), *facts, *words, **variables)


def test_once_when_it_breaks_and_once_when_it_is_mended(here: Place) -> None:
    with webhook() as hook:
        url = f"desk=json://127.0.0.1:{hook.port}"
        first = handler(here, FOXRUN_ALERTS=url, FOXRUN_BRANCH="ml-alpha-$(id)")
        second = handler(here, "--started", "2099-01-01T00:00:00Z", FOXRUN_ALERTS=url, FOXRUN_BRANCH="ml-alpha-$(id)")
        always = handler(here, "--always", FOXRUN_ALERTS=url, FOXRUN_BRANCH="ml-alpha-$(id)")
    assert (first.code, first.out) == (0, "alert sent to desk\n")
    assert second.out == "no alert: ml-alpha-$(id) is broken since aaaaaaaaaaaa, which was told\n"
    assert always.out == "alert sent to desk\n"
    assert [body["foxrun"]["branch"] for _, _, body in hook.received] == ["ml-alpha-$(id)"] * 2


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"FOXRUN_ALERT_RULES": "[{quiet: nights}]"},
            "settings are left out: FOXRUN_ALERT_RULES: alert_rules cannot be",
        ),
        ({"FOXRUN_SEED": "x"}, "settings are left out: FOXRUN_SEED"),
        ({"FOXRUN_HOST_API": "nonsense", "FOXRUN_HOST_TOKEN": "t"}, "settings are left out: FOXRUN_HOST_API"),
        ({"FOXRUN_HOST_TOKEN": "t t"}, "status not written: FOXRUN_HOST_TOKEN holds a blank"),
        ({"FOXRUN_EVENT": "%%%"}, "alert sent to json"),
        ({"FOXRUN_EVENT": base64.b64encode(b'[1, {"dev/origin": 2}]').decode()}, "alert sent to json"),
    ],
)
def test_settings_that_cannot_be_read_keep_no_alert_back(here: Place, variables: dict[str, str], said: str) -> None:
    with webhook() as hook:
        url = f"json://127.0.0.1:{hook.port}/swordfish"
        done = handler(here, "--origin", "https://github.com/desk/alpha", FOXRUN_ALERTS=url, **variables)
    assert done.code == 0 and said in done.out, done.out + done.err
    assert len(hook.received) == 1 and "swordfish" not in done.out + done.err


def test_a_home_that_cannot_be_written_keeps_no_alert_back(here: Place) -> None:
    here.home.mkdir()
    (here.home / "alerts").write_text("a file where a folder should be")
    with webhook() as hook:
        done = handler(here, FOXRUN_ALERTS=f"json://127.0.0.1:{hook.port}")
    assert done.code == 0 and "alerts cannot remember what was told" in done.out
    assert len(hook.received) == 1


def test_the_test_says_which_channels_work(here: Place) -> None:
    with webhook() as hook, webhook(404) as dead:
        (here.directory / "foxrun.yaml").write_text(
            f"alerts:\n  desk: json://127.0.0.1:{hook.port}/swordfish\n  dead: json://127.0.0.1:{dead.port}/swordfish\n"
        )
        done = here("alert", "--test")
        assert done.code == 6
        lines = done.out.splitlines()
        assert lines[0] == "desk: told"
        assert lines[1].startswith(f"dead: alert to json://127.0.0.1:{dead.port}/*** failed after 3 attempts: ")
        assert hook.received[0][2]["title"] == "foxrun: test"
        assert here("config", "alerts", "-o", "json").json["value"] == [
            f"desk=json://127.0.0.1:{hook.port}/***",
            f"dead=json://127.0.0.1:{dead.port}/***",
        ]
    assert here("alert", "--test", FOXRUN_ALERTS="").code == 6  # both are gone now
    (here.directory / "foxrun.yaml").unlink()
    assert here("alert", "--test").out == "no channel is set (FOXRUN_ALERTS, or alerts in foxrun.yaml)\n"


def test_what_waits_is_flushed(here: Place) -> None:
    assert here("alert", "--flush").out == "nothing waits\n"
    rules = '[{"quiet": "00:00-24:00 UTC"}]'  # every hour of every day
    with webhook() as hook:
        url = {"FOXRUN_ALERTS": f"json://127.0.0.1:{hook.port}"}
        done = handler(here, FOXRUN_ALERT_RULES=rules, FOXRUN_BRANCH="b", **url)
        assert done.out.startswith("quiet hours: json is told after 2")
        waits = here("alert", "--flush", **url)
        assert waits.out.startswith("1 message wait") and hook.received == []
        file = here.home / "alerts" / "state.json"
        state = json.loads(file.read_text())
        state["outbox"][0]["due"] = "2026-01-01T00:00:00Z"
        file.write_text(json.dumps(state))
        assert here("alert", "--flush", "--wait", **url).out == "alert sent to json\n"
    assert len(hook.received) == 1


HOSTILE = '{{workflow.name}} "q" \x7f $(X) 🦊 \U000e0001\n@team'


def test_what_an_event_said_is_read_back() -> None:
    notes = {"dev/origin": "https://github.com/desk/alpha", "dev/message": HOSTILE, "dev/branch": HOSTILE, "dev/x": "y"}
    context = of_event(base64.b64encode(json.dumps(notes).encode()).decode())
    assert context == AlertContext(origin="https://github.com/desk/alpha", message=HOSTILE, branch=HOSTILE)
    assert of_event("") == AlertContext()


def test_facts_come_from_the_first_that_knows_them() -> None:
    workflow: dict[str, Any] = {
        "metadata": {
            "name": "w", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"foxrun.dev/kind": "ci-gate", "foxrun.dev/branch": "cut-1a2b3c"},
            "annotations": {"foxrun.dev/branch": "cut/whole", "foxrun.dev/origin": "https://github.com/desk/alpha"},
        },
        "spec": {"arguments": {"parameters": [{"name": "sha", "value": "a" * 40}, {"name": "seed", "value": "0"}]}},
    }  # fmt: skip
    known = of_workflow(workflow, url="https://argo.example/{namespace}/{name}")
    assert (known.branch, known.kind, known.sha, known.seed) == ("cut/whole", "ci-gate", "a" * 40, 0)
    assert known.link == "https://argo.example/ns/w"
    both = merged(AlertContext(branch="b"), known)
    assert (both.branch, both.seed, both.origin) == ("b", 0, "https://github.com/desk/alpha")
    against = {**workflow, "metadata": {**workflow["metadata"], "annotations": {"foxrun.dev/against": "b" * 40}}}
    assert of_workflow(against).kind == "ci-gate-against"


def test_a_night_names_a_branch_and_its_runs_know_the_commit(here: Place) -> None:
    ran, image = "e" * 40, "f" * 40
    runs = [RunSummary(label=label, commit=ran, manifest={"code": {"branch": "main"}}) for label in ("a", "b")]
    (here.directory / "verdict.json").write_text(json.dumps(as_dict(replace(VERDICT, runs=runs))))
    words = ("alert", "--workflow", "nightly-1", "--status", "Failed", "--kind", "nightly", "--sha", "feature/größe")
    with host("github") as server, webhook() as hook:
        variables = {
            "FOXRUN_HOST_TOKEN": TOKEN, "FOXRUN_HOST_API": server.api, "FOXRUN_COMMIT_RUN": image,
            "FOXRUN_ALERTS": f"json://127.0.0.1:{hook.port}",
        }  # fmt: skip
        told = here(
            *words, "--verdict", "verdict.json", "--origin", server.origin, "--history", "entry.json", **variables
        )
        assert f"status foxrun/nightly of {ran[:12]}: failure" in told.out.splitlines(), told.out + told.err
        # Neither gate nor legs left a word: what this pod is made of.
        lost = here(*words, "--verdict", "absent.json", "--origin", server.origin, **variables)
        assert f"status foxrun/nightly of {image[:12]}: error" in lost.out.splitlines(), lost.out + lost.err
        unknown = here(
            *words, "--verdict", "absent.json", "--origin", server.origin, **variables | {"FOXRUN_COMMIT_RUN": ""}
        )
        assert "status not written: no commit is known" in unknown.out
    assert [s["sha"] for s in server.state.statuses] == [ran, image]
    assert json.loads((here.directory / "entry.json").read_text())["sha"] == ran
    assert next(body["foxrun"]["sha"] for _, _, body in hook.received) == ran


def test_a_template_keeps_what_nobody_gave_and_its_labels_are_cut() -> None:
    def given(**values: str) -> dict[str, Any]:
        return {"arguments": {"parameters": [{"name": name, "value": value} for name, value in values.items()]}}

    stored = given(origin="https://github.com/desk/alpha", seed="42", branch="main")
    labels = {"foxrun.dev/kind": "nightly", "foxrun.dev/branch": "feature-x-0123456789"}
    workflow = {
        "metadata": {"name": "n", "labels": labels},
        "spec": given(branch="feature/x", sha="main"),
        "status": {"storedWorkflowTemplateSpec": stored},
    }
    known = of_workflow(workflow)
    assert (known.kind, known.branch, known.sha, known.seed) == ("nightly", "feature/x", "", 42)
    assert known.origin == "https://github.com/desk/alpha"


def test_the_link_leads_to_the_report_where_one_was_written(here: Place) -> None:
    written = {**as_dict(VERDICT), "node": "w-1-1234"}
    words = ("alert", "--workflow", "w-1", "--status", "Failed", "--kind", "nightly", "--uid", "u-1", "--verdict")
    urls = {
        "FOXRUN_REPORT_URL": "https://argo.example/{namespace}/{name}/{node}/report\n",  # as a Secret's file ends
        "FOXRUN_WORKFLOW_URL": "https://argo.example/workflows/{uid}",
        "FOXRUN_NAMESPACE": "foxrun",
    }
    with webhook() as hook:
        for text in (json.dumps(written), json.dumps(as_dict(VERDICT)), "damaged", None):
            (here.directory / "verdict.json").unlink(missing_ok=True)
            if text is not None:
                (here.directory / "verdict.json").write_text(text)
            done = here(*words, "verdict.json", FOXRUN_ALERTS=f"json://127.0.0.1:{hook.port}", **urls)
            assert done.code == 0 and "alert sent to json" in done.out, done.out + done.err
        urls["FOXRUN_REPORT_URL"] = "https://reports.example/{uid}/report.html"
        (here.directory / "verdict.json").write_text(json.dumps(as_dict(VERDICT)))
        here(*words, "verdict.json", FOXRUN_ALERTS=f"json://127.0.0.1:{hook.port}", **urls)
    assert [body["foxrun"]["report"] for _, _, body in hook.received] == [
        "https://argo.example/foxrun/w-1/w-1-1234/report",
        *["https://argo.example/workflows/u-1"] * 3,
        "https://reports.example/u-1/report.html",
    ]

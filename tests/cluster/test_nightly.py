"""A night as a cluster runs it: the CronWorkflow starts by itself, its commit is told, and what waits is sent later."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.receivers import Webhook, webhook
from tests.alerts.test_mail import Mailbox, controllers, text_of
from tests.cluster import reach
from tests.cluster.whole import Said, Whole
from tests.hosts.servers import TOKEN, Server, host
from tests.image import images
from tests.infra.namespace import Account, namespace
from tests.infra.namespace import _kubectl as kubectl
from tests.workflows.cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(os.environ.get("ARGO_SECURE") != "false", reason="ARGO_SERVER is asked over plain HTTP alone"),
]
BRANCH = "release/2026-$(id)"
SMALLER = {"steps": "6", "eval-steps": "3", "gate-steps": "4", "parameters": '{"envs":"8","width":"32","window":"16"}'}
DEADLINE_S = 600
# What docs/alerts.md says, with the address of the argo-server beside which the tests run.
REPORT_URL = (
    f"http://{os.environ.get('ARGO_SERVER')}/artifact-files/{{namespace}}/workflows/{{name}}/{{node}}/outputs/report"
)


@dataclass
class Night:
    """A namespace in which a night is about to start, and those that are to hear of it."""

    namespace: str
    server: Server
    hook: Webhook
    late: Webhook
    letters: Mailbox
    whole: Whole

    def foxrun(self, *words: str) -> Said:
        return self.whole(*words, FOXRUN_ENGINE="argo", FOXRUN_NAMESPACE=self.namespace)

    def get(self, *words: str) -> Any:
        done = kubectl("-n", self.namespace, "get", *words, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else {}


@contextmanager
def mail() -> Iterator[tuple[Mailbox, str]]:
    letters = Mailbox()
    controller = reach.mail_controller(controllers, letters)
    controller.start()
    try:
        address = f"{controller.hostname}:{controller.port}"
        yield letters, f"mailto://{address}?from=foxrun@example.org&to=desk@example.org&mode=insecure"
    finally:
        controller.stop()


def change(thing: dict[str, Any], image: str, origin: str) -> None:
    """What a team says in its overlay: a small night in the next minute, our image, and the delayed alerts' hour."""
    if thing["kind"] == "WorkflowTemplate":
        for parameter in thing["spec"]["arguments"]["parameters"]:
            parameter["value"] = SMALLER.get(parameter["name"], parameter.get("value"))
            if parameter["value"] is None:
                del parameter["value"]
    if thing["kind"] == "CronWorkflow":
        soon = datetime.now(UTC) + timedelta(minutes=1, seconds=20)
        thing["spec"]["schedules"] = [f"{soon.minute} {soon.hour} * * *"]
        given = {"image": image, "origin": origin, "sha": BRANCH, "branch": BRANCH}
        thing["spec"]["workflowSpec"]["arguments"]["parameters"] = [
            {"name": name, "value": value} for name, value in {"tree": "", **given}.items()
        ]
    if thing["kind"] == "CronJob":
        thing["spec"]["schedule"] = "* * * * *"
        thing["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] = image


@pytest.fixture
def night(image: images.Image, tmp_path: Path) -> Iterator[Night]:
    with ExitStack() as stack:
        server = stack.enter_context(host("github", reach.serve_pods))
        server.state.pulls[0]["head"]["sha"] = images.git(image.context, "rev-parse", "HEAD")
        hook, late = (stack.enter_context(webhook(prepare=reach.serve_pods)) for _ in range(2))
        letters, mail_url = stack.enter_context(mail())
        name = stack.enter_context(
            namespace(
                tmp_path,
                change=lambda thing: change(thing, image.reference, server.origin),
                components=("nightly", "alerts"),
            )
        )
        now = datetime.now(UTC)
        quiet = f"{now - timedelta(hours=2):%H:%M}-{now + timedelta(hours=2):%H:%M} UTC"
        rules = [
            {"verdicts": "all", "channels": "hook"},
            {"verdicts": "all", "channels": ["late", "mail"], "quiet": quiet},
        ]
        keys = {
            "urls": f"hook={hook.url}\nlate={late.url}\nmail={mail_url}\n",
            "rules": yaml.safe_dump(rules),
            "host-api": server.api + "\n",
            "host-token": TOKEN + "\n",
            "report-url": REPORT_URL + "\n",
        }
        said = [f"--from-literal={key}={value}" for key, value in keys.items()]
        done = kubectl("-n", name, "create", "secret", "generic", "foxrun-alerts", *said)
        assert done.returncode == 0, done.stderr
        _look_again(name)
        made = Night(name, server, hook, late, letters, Whole(image.context, tmp_path / "home"))
        yield made
        for workflow in made.get("workflows")["items"]:
            _forget(workflow)


def _look_again(namespace: str) -> None:
    """As docs/nightly.md says: Argo may see the CronWorkflow before the template that came with it, and then refuses
    it until it changes."""
    done = kubectl("-n", namespace, "annotate", "cronworkflow", "nightly", "foxrun.dev/look-again=1", "--overwrite")
    assert done.returncode == 0, done.stderr


def _names(night: Night) -> list[str]:
    """Workflows that the CronWorkflow has made."""
    made = "workflows.argoproj.io/cron-workflow=nightly"
    return [item["metadata"]["name"] for item in night.get("workflows", "-l", made)["items"]]


def _forget(workflow: dict[str, Any]) -> None:
    """Take what it stored out of the bucket; its namespace takes the rest."""
    uid, store = workflow["metadata"]["uid"], Cluster()
    for key in [*store.keys(f"{uid}/"), f"history/{uid}.json"]:
        store.remove(key)


def until(what: str, found: Callable[[], Any]) -> Any:
    """Wait until ``found`` gives something."""
    give_up_at = time.monotonic() + DEADLINE_S
    while not (value := found()):
        assert time.monotonic() < give_up_at, f"not within {DEADLINE_S} s: {what}"
        time.sleep(1.0)
    return value


def test_a_night_starts_by_itself_and_its_commit_is_told(night: Night, image: images.Image, tmp_path: Path) -> None:
    sha = images.git(image.context, "rev-parse", "HEAD")
    name = until("the night starts", lambda: next(iter(_names(night)), ""))
    watched = night.foxrun("watch", name, "-o", "json")
    assert (watched.code, watched.json["verdict"]) == (0, "identical"), watched.all
    codes = [run["manifest"]["code"] for run in watched.json["runs"]]
    ran = {"commit_asked": "", "tree_asked": "", "commit_run": sha, "tree_run": image.tree, "branch": BRANCH}
    assert codes == [ran, ran]
    # The host.
    assert [(s["sha"], s["context"], s["state"]) for s in night.server.state.statuses] == [
        (sha, "foxrun/nightly", "pending"),
        (sha, "foxrun/nightly", "success"),
    ]
    [comment] = night.server.state.bodies()
    assert sha[:12] in comment and name in comment
    link = night.server.state.statuses[-1]["target_url"]
    _opens_as_a_report(link, night.namespace)
    # The history.
    listed = night.foxrun("history", "--kind", "nightly", "--branch", BRANCH, "--limit", "0", "-o", "json")
    [entry] = [found for found in listed.json if found["name"] == name]
    assert (entry["name"], entry["sha"], entry["branch"], entry["verdict"]) == (name, sha, BRANCH, "identical")
    link = night.server.state.statuses[-1]["target_url"]
    assert entry["report"] == link
    page = tmp_path / "history.html"
    assert night.foxrun("history", "--kind", "nightly", "--html", str(page)).code == 0
    assert name in page.read_text("utf-8") and f'<a href="{link}">' in page.read_text("utf-8")
    # The channel that has no quiet hours.
    until("the alert is there", lambda: night.hook.received)
    [(_, _, told)] = night.hook.received
    facts = told["foxrun"]
    assert (facts["event"], facts["kind"], facts["branch"], facts["sha"]) == ("news", "nightly", BRANCH, sha)
    assert facts["report"] == link
    # Those that have: nothing yet. Then the hour comes, and the CronJob sends what waits.
    assert (night.late.received, night.letters.letters) == ([], [])
    _the_hour_comes(night)
    until("what waited is sent", lambda: night.late.received and night.letters.letters)
    [(_, _, told)] = night.late.received
    assert told["foxrun"] == facts
    [(_, letter)] = night.letters.letters
    assert name in letter["Subject"] and sha[:12] in text_of(letter)
    until(
        "the CronJob's pod ends well", lambda: night.get("cronjob", "foxrun-alerts")["status"].get("lastSuccessfulTime")
    )
    state = json.loads(night.get("configmap", "foxrun-alert-state")["data"]["state.json"])
    assert state["outbox"] == []
    assert (len(night.hook.received), len(night.late.received), len(night.letters.letters)) == (1, 1, 1)


def _opens_as_a_report(link: str, namespace: str) -> None:
    """Whoever may open artifacts in argo-server, as infra/README.md lets people, gets the page."""
    words = {
        "role": ("--verb=get", "--resource=secrets", "--resource-name=foxrun-s3"),
        "rolebinding": ("--role=foxrun-artifacts", f"--serviceaccount={namespace}:foxrun-submitter"),
    }
    for kind, options in words.items():
        done = kubectl("-n", namespace, "create", kind, "foxrun-artifacts", *options)
        assert done.returncode == 0, done.stderr
    token = Account(namespace, "foxrun-submitter").token

    def page() -> str:
        request = urllib.request.Request(link, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.headers["Content-Type"].startswith("text/html")
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:  # the role is not seen everywhere at once
            with error:
                assert error.code in (403, 500), error
            return ""

    assert "Identical" in until("the report opens", page)


def _the_hour_comes(night: Night) -> None:
    """Bring forward when the messages that wait are due."""
    state = json.loads(night.get("configmap", "foxrun-alert-state")["data"]["state.json"])
    assert sorted(item["channel"] for item in state["outbox"]) == ["late", "mail"], state
    for item in state["outbox"]:
        item["due"] = "2026-01-01T00:00:00Z"
    patch = json.dumps({"data": {"state.json": json.dumps(state)}})
    done = kubectl(
        "-n", night.namespace, "patch", "configmap", "foxrun-alert-state", "--type=merge", f"--patch={patch}"
    )
    assert done.returncode == 0, done.stderr

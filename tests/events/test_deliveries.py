"""Webhook deliveries of both hosts, sent to a real argo-server: what each is answered, and exactly what it starts."""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
import urllib.parse
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import deliveries, payloads
from tests.events.deliveries import GITHUB, LONG, Delivery, Started
from workflows.names import label_value

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(not os.environ.get("ARGO_SERVER"), reason="no argo-server: ARGO_SERVER is not set"),
    pytest.mark.skipif(os.environ.get("ARGO_SECURE") != "false", reason="ARGO_SERVER is asked over plain HTTP alone"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]
if TYPE_CHECKING:
    from tests.events.server import Endpoint
if os.environ.get("KUBECONFIG"):
    from kubernetes import client

    from tests.events.server import GROUP, name_of

DEADLINE_S = 300


def test_what_each_delivery_starts(endpoint: Endpoint) -> None:
    sent = list(deliveries.table())
    assert len(sent) >= 20
    wanted, got, expected = [], [], {}
    before = set(endpoint.workflows())
    for delivery in sent:
        started = delivery.starts
        names = [_name(delivery, started)] if started else []
        wanted.append((delivery.host, delivery.event, delivery.what, delivery.answer, names))
        status, _ = endpoint.send(delivery)
        now = set(endpoint.workflows())
        got.append((delivery.host, delivery.event, delivery.what, status, sorted(now - before)))
        before = now
        expected |= dict.fromkeys(names, started)
    assert got == wanted
    labelled = _once_labelled(endpoint, set(expected))
    assert {name: _shown(workflow) for name, workflow in labelled.items()} == {
        name: _expected(started, name) for name, started in expected.items() if started
    }


def test_why_nothing_was_started(endpoint: Endpoint) -> None:
    push = payloads.github_push("refs/heads/ml-alpha-why", payloads.sha_of("why"))
    good = Delivery(host=GITHUB, event="push", what="", payload=push, starts=None)
    assert endpoint.send(good)[0] == 200
    status, answer = endpoint.send(good)
    name = name_of(payloads.GITHUB_URL, "ml-alpha-why", payloads.sha_of("why"))
    assert status == 500
    assert f'failed to create workflow: workflows.argoproj.io "{name}" already exists' in answer["message"]
    for secret in (deliveries.WRONG, deliveries.MISSING):
        status, answer = endpoint.send(Delivery(**{**vars(good), "secret": secret}))
        assert (status, answer["message"].partition(".")[0]) == (401, "token not valid")


def test_a_form_is_refused(endpoint: Endpoint) -> None:
    """What GitHub sends unless the webhook's content type is set to application/json."""
    push = payloads.github_push("refs/heads/ml-alpha-form", payloads.sha_of("form"))
    delivery = Delivery(host=GITHUB, event="push", what="", payload=push, starts=None)
    body = urllib.parse.urlencode({"payload": json.dumps(push)}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", **endpoint.headers(delivery, body)}
    before = set(endpoint.workflows())
    assert endpoint.post(body, headers)[0] == 400
    assert set(endpoint.workflows()) == before


def test_pods_run_the_image_of_the_commit_also_when_a_person_submits_the_template(endpoint: Endpoint) -> None:
    sha, branch = payloads.sha_of("by hand"), "ml-alpha-$(FOXRUN_SHA)"
    values = {"sha": sha, "branch": branch}
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "by-hand"},
        "spec": {
            "workflowTemplateRef": {"name": "ci-gate"}, "suspend": False,
            "arguments": {"parameters": [{"name": name, "value": value} for name, value in values.items()]},
        },
    }  # fmt: skip
    client.CustomObjectsApi().create_namespaced_custom_object(**GROUP, namespace=endpoint.namespace, body=workflow)
    deadline = time.monotonic() + DEADLINE_S
    selector = "workflows.argoproj.io/workflow=by-hand"

    def mains() -> list[tuple[client.V1Container, dict[str, str]]]:
        """The legs' containers with their variables; `pending`, which tells the host, runs no commit."""
        pods = client.CoreV1Api().list_namespaced_pod(endpoint.namespace, label_selector=selector).items
        found = [container for pod in pods for container in pod.spec.containers if container.name == "main"]
        variables = [{v.name: v.value or "" for v in container.env or []} for container in found]
        return [(c, env) for c, env in zip(found, variables, strict=True) if "FOXRUN_LEG" in env]

    while len(legs := mains()) < 2:
        assert time.monotonic() < deadline, "the legs have no pods"
        time.sleep(0.5)
    # The controller writes what it made of a workflow, labels from its template too, after it has made the pods.
    while not (labels := endpoint.workflows()["by-hand"]["metadata"].get("labels")):
        assert time.monotonic() < deadline, "the workflow has no labels"
        time.sleep(0.5)
    for main, env in legs:
        assert main.image == f"foxrun:{sha}"
        assert (env["FOXRUN_SHA"], env["FOXRUN_TREE"]) == (sha, "")
        assert env["FOXRUN_BRANCH"] == branch.replace("$", "$$"), "Kubernetes makes one dollar of two"
    assert {key: labels[f"foxrun.dev/{key}"] for key in ("kind", "sha", "branch", "seed", "mode")} == {
        "kind": "ci-gate", "sha": sha, "branch": label_value(branch), "seed": "42", "mode": "1",
    }  # fmt: skip


def test_no_secret_is_in_what_was_made(endpoint: Endpoint) -> None:
    push = payloads.github_push("refs/heads/ml-alpha-told", payloads.sha_of("told"))
    delivery = Delivery(host=GITHUB, event="push", what="", payload=push, starts=None)
    assert [endpoint.send(delivery)[0] for _ in range(2)] == [200, 500]
    core = client.CoreV1Api()
    deadline = time.monotonic() + DEADLINE_S
    # The server answers before the event is written.
    while "WorkflowEventBindingError" not in (text := _made(endpoint)):
        assert time.monotonic() < deadline, "redeliveries are not told to whoever looks"
        time.sleep(0.5)
    tokens = [
        base64.b64decode(core.read_namespaced_secret(f"{name}.service-account-token", endpoint.namespace).data["token"])
        for name in ("foxrun-github", "foxrun-gitlab")
    ]
    for secret in [*endpoint.secrets.values(), *(token.decode() for token in tokens)]:
        assert len(secret) > 60 and secret not in text


def test_a_name_is_legal_and_its_own_for_any_text() -> None:
    branches = ["ml-alpha-x", LONG, LONG[:-1] + "y", "ml-alpha-{{a}}", "ml-alpha-größe", "ml-alpha-\n"]
    names = {name_of(payloads.GITHUB_URL, branch, "a" * 40) for branch in branches}
    assert len(names) == len(branches)
    assert {len(name) for name in names} == {32}


def _made(endpoint: Endpoint) -> str:
    """All that deliveries left in the namespace: workflows, events and pods."""
    core = client.CoreV1Api()
    made = [endpoint.workflows(), core.list_namespaced_event(endpoint.namespace).to_dict()]
    made += [core.list_namespaced_pod(endpoint.namespace).to_dict()]
    return json.dumps(made, default=str)


def _name(delivery: Delivery, started: Started) -> str:
    url = payloads.GITHUB_URL if delivery.host == GITHUB else payloads.GITLAB_URL
    return name_of(url, started.branch, started.sha)


def _once_labelled(endpoint: Endpoint, names: set[str]) -> dict[str, dict[str, Any]]:
    """These workflows, once the controller has added what the template says: then nothing changes any more."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        workflows = {name: workflow for name, workflow in endpoint.workflows().items() if name in names}
        if all("foxrun.dev/seed" in w["metadata"]["labels"] for w in workflows.values()):
            return workflows
        assert time.monotonic() < deadline, "the controller has not labelled them"
        time.sleep(0.5)


def _shown(workflow: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = workflow["metadata"], workflow["spec"]
    ours = ("foxrun.dev/", "workflows.argoproj.io/title", "workflows.argoproj.io/description")
    return {
        "binding": metadata["labels"]["workflows.argoproj.io/workflow-event-binding"],
        "labels": {k: v for k, v in metadata["labels"].items() if k.startswith("foxrun.dev/")},
        "annotations": {k: v for k, v in metadata["annotations"].items() if k.startswith(ours)},
        "template": spec["workflowTemplateRef"],
        "arguments": {p["name"]: p["value"] for p in spec["arguments"]["parameters"]},
    }


def _expected(started: Started, name: str) -> dict[str, Any]:
    label, event = label_value(started.branch), started.event.replace("-", " ")
    origin = payloads.GITHUB_URL if "github" in started.binding else payloads.GITLAB_URL
    return {
        "binding": started.binding,
        "labels": {
            "foxrun.dev/kind": "ci-gate", "foxrun.dev/sha": started.sha, "foxrun.dev/branch": label,
            "foxrun.dev/event": started.event, "foxrun.dev/seed": "42", "foxrun.dev/mode": "1",
        },
        "annotations": {
            "foxrun.dev/sha": started.sha, "foxrun.dev/branch": started.branch, "foxrun.dev/origin": origin,
            "foxrun.dev/author": started.author[:300], "foxrun.dev/message": started.message[:1000],
            "workflows.argoproj.io/title": f"CI gate of {started.sha[:7]} on {label}",
            "workflows.argoproj.io/description": f"Started by a {event}; commit {started.sha}",
        },
        "template": {"name": "ci-gate"},
        "arguments": {
            "sha": started.sha, "branch": started.argument or started.branch,
            **({"tree": started.tree} if started.tree else {}),
        },
    }  # fmt: skip

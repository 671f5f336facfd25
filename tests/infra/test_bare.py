"""Argo's controller with the rights of overlays/bare, confined to a namespace: it runs, stops and deletes workflows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from workflows.regression_pair import regression_pair
from workflows.render import to_dict

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(shutil.which("workflow-controller") is None, reason="no workflow-controller on PATH"),
]
if os.environ.get("KUBECONFIG"):
    from tests.infra.namespace import Account, kubeconfig, namespace
    from tests.workflows.cluster import BUSYBOX, as_busybox, unique

# The cluster's own controller leaves workflows alone that carry another controller's label.
INSTANCE = "foxrun-test-bare"
LABEL = {"workflows.argoproj.io/controller-instanceid": INSTANCE}
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/{ns}/workflows"
MERGE = "application/merge-patch+json"
DEADLINE_S = 240


def test_a_controller_with_these_rights(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def change(thing: dict[str, Any]) -> None:
        if thing["metadata"]["name"] == "workflow-controller-configmap":
            thing["data"]["instanceID"] = INSTANCE
            thing["data"]["metricsConfig"] = thing["data"]["metricsConfig"].replace("9090", str(port))
            thing["data"]["executor"] = "imagePullPolicy: IfNotPresent\n" + thing["data"]["executor"]

    with namespace(tmp_path, "bare", change) as name:
        (tmp_path / "kubeconfig").write_text(kubeconfig(Account(name, "argo")))
        log = tmp_path / "controller.log"
        with log.open("w") as output:
            controller = subprocess.Popen(
                [
                    "workflow-controller", "--namespaced", "--namespace", name,
                    "--kubeconfig", str(tmp_path / "kubeconfig"),
                    "--executor-image", "localhost/argoexec:1", "--executor-image-pull-policy", "IfNotPresent",
                ],
                stdout=output, stderr=output, env={**os.environ, "LEADER_ELECTION_IDENTITY": "test"},
            )  # fmt: skip
        try:
            _run_stop_delete(Account(name, "foxrun-submitter"))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()[-3000:]}") from error
        finally:
            controller.kill()  # on SIGTERM it waits for its lease and workers, a minute and more
            controller.wait(timeout=60)
        refused = [line for line in log.read_text().splitlines() if "forbidden" in line.lower()]
        assert refused == []


def _run_stop_delete(account: Account) -> None:
    pair = as_busybox(to_dict(regression_pair(unique(BUSYBOX))))
    pair["metadata"]["labels"] |= LABEL
    sleeper = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "sleeper", "labels": LABEL},
        "spec": {
            "entrypoint": "main", "serviceAccountName": "foxrun",
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532},
            "templates": [{"name": "main", "container": {
                "image": "localhost/busybox:1", "command": ["sh", "-c"],
                "args": ["trap 'exit 143' TERM; sleep 600 & wait"],
            }}],
        },
    }  # fmt: skip
    for workflow in (pair, sleeper):
        status, answer = account.ask("POST", WORKFLOWS, workflow)
        assert status == 201, answer
    until(account, "sleeper", lambda status: any(n["phase"] == "Running" for n in status.get("nodes", {}).values()))
    assert account.ask("PATCH", f"{WORKFLOWS}/sleeper", {"spec": {"shutdown": "Stop"}}, MERGE)[0] == 200
    assert until(account, "sleeper", _ended)["message"] == "Stopped with strategy 'Stop'"
    done = until(account, pair["metadata"]["name"], _ended)
    assert done["phase"] == "Succeeded", done.get("message")
    for workflow in (pair, sleeper):
        path = f"{WORKFLOWS}/{workflow['metadata']['name']}"
        assert account.ask("DELETE", path)[0] == 200
        deadline = time.monotonic() + 60
        while account.ask("GET", path)[0] != 404:
            assert time.monotonic() < deadline, "a finalizer is left"
            time.sleep(1.0)


def _ended(status: dict[str, Any]) -> bool:
    return bool(status.get("finishedAt"))


def until(account: Account, name: str, condition: Any) -> dict[str, Any]:
    """The status of a workflow, once the condition holds of it."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        status: dict[str, Any] = account.ask("GET", f"{WORKFLOWS}/{name}")[1].get("status", {})
        if condition(status):
            return status
        time.sleep(1.0)
    raise AssertionError(f"{name}: {status}")

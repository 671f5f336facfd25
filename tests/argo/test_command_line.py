"""`foxrun` on a cluster, as a person calls it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.opening import open_argo
from orchestrator.settings import load_settings
from tests.argo.conftest import NAMESPACE
from tests.argo.small import pair, suspended, unique

# What the gate and compare of ours leave for the cluster to see.
JUDGE = "echo judged; printf '%s' \"$VERDICT\" > /tmp/verdict; exit $CODE"


@pytest.fixture
def template(kube: ArgoEngine) -> Iterator[str]:
    """A WorkflowTemplate that ends as its parameters say."""
    name = unique()
    spec = pair("true")["spec"]
    spec["arguments"] = {"parameters": [{"name": n, "value": v} for n, v in (("verdict", "identical"), ("code", "0"))]}
    container = spec["templates"][1]["container"]
    container["command"] = ["sh", "-c", JUDGE]
    container["env"] = [
        {"name": "VERDICT", "value": "{{workflow.parameters.verdict}}"},
        {"name": "CODE", "value": "{{workflow.parameters.code}}"},
    ]
    spec["templates"][1]["outputs"] = {
        "parameters": [{"name": "verdict", "valueFrom": {"path": "/tmp/verdict", "default": "unknown"}}]
    }
    spec["templates"][0]["dag"]["tasks"] = [{"name": "compare", "template": "leg"}]
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{kube.api.namespace}/workflowtemplates"
    body = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip
    transport = kube.api.transport  # type: ignore[attr-defined]
    transport.json("POST", path, body=body)
    yield name
    transport.json("DELETE", f"{path}/{name}")


def environment(home: Path, **other: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "ARGO_"))}
    return {**kept, "FOXRUN_HOME": str(home), "FOXRUN_NAMESPACE": NAMESPACE, **other}


def foxrun(home: Path, *words: str, **other: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orchestrator", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], env=environment(home, **other)
    )


def test_submit_wait_list_get_logs_and_delete(kube: ArgoEngine, template: str, tmp_path: Path) -> None:
    name = unique()
    words = ("submit", "--from", template, "-p", "verdict=drift", "-p", "code=3", "--name", name)
    try:
        done = foxrun(tmp_path, *words, "--engine", "argo")
        assert (done.returncode, done.stdout) == (0, f"{name}\n"), done.stderr
        assert done.stderr.endswith(f"follow it: foxrun watch {name}\n")
        attached = foxrun(tmp_path, *words, "--wait", "-o", "json", FOXRUN_ENGINE="argo")
        assert attached.returncode == 3, attached.stderr
        verdict = json.loads(attached.stdout)
        assert (verdict["verdict"], verdict["message"]) == ("drift", "compare says drift at step None in None")
        assert kube.get(name)["metadata"]["labels"]["foxrun.dev/verdict"] == "drift"

        listed = foxrun(tmp_path, "list", "--verdict", "drift", "-o", "name", "--engine", "argo")
        assert name in listed.stdout.split()
        logs = foxrun(tmp_path, "logs", name, "--engine=argo")
        assert logs.stdout == "compare: judged\n", logs.stderr
        shown = foxrun(tmp_path, "--engine", "argo", "get", name)
        assert "compare.verdict:  drift" in shown.stdout
        other = foxrun(tmp_path, *words[:-2], "--name", name, "-p", "code=0", "--engine", "argo")
        assert other.returncode == 2
        assert f"workflow '{name}' exists already" in other.stderr
    finally:
        deleted = foxrun(tmp_path, "delete", "--force", name, "--engine", "argo")
        assert deleted.stdout == f"{name} is deleted\n", deleted.stderr


def test_a_dry_run_on_the_server_prints_and_stores_nothing(kube: ArgoEngine, template: str, tmp_path: Path) -> None:
    words = ("submit", "--from", template, "--name", (name := unique()), "--engine", "argo", "-o", "json")
    server = json.loads(foxrun(tmp_path, *words, "--dry-run=server").stdout)
    client = json.loads(foxrun(tmp_path, *words, "--dry-run").stdout)
    assert server["spec"] == client["spec"]
    assert ("uid" in server["metadata"], "uid" in client["metadata"]) == (True, False)
    assert foxrun(tmp_path, "get", name, "--engine", "argo").returncode == 2


def test_ctrl_c_leaves_it_running_and_a_second_watch_takes_it_up(kube: ArgoEngine, submit: Any, tmp_path: Path) -> None:
    name = submit(kube, suspended(unique()))
    command = [sys.executable, "-m", "orchestrator", "watch", name, "--engine", "argo"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(tmp_path), cwd=Path(__file__).parents[2]
    ) as watching:
        assert watching.stderr is not None
        assert watching.stderr.readline() == f"workflow: {name}\n"
        time.sleep(1)
        watching.send_signal(signal.SIGINT)
        said = watching.stderr.read()
    assert watching.returncode == 130
    assert f"the workflow goes on: foxrun watch {name}" in said
    again = foxrun(tmp_path, "watch", name, "--engine", "argo", "--deadline", "1s")
    assert again.returncode == 6
    assert f"error: workflow {name} is Running after 1 s of following; it goes on" in again.stderr


@pytest.mark.parametrize(
    ("environ", "flags", "engine"),
    [
        ({"KUBECONFIG": "/a/stray/kubeconfig", "ARGO_SERVER": "stray:2746"}, {}, "local"),
        ({"FOXRUN_KUBECONFIG": "/named"}, {}, "local"),
        ({"FOXRUN_ENGINE": "argo"}, {}, "argo"),
        ({"FOXRUN_CONTEXT": "prod"}, {}, "argo"),
        ({"FOXRUN_ARGO_SERVER": "https://argo"}, {}, "argo"),
        ({}, {"context": "prod"}, "argo"),
        ({"FOXRUN_CONTEXT": "prod"}, {"engine": "local"}, "local"),
        ({"FOXRUN_ENGINE": "local"}, {"context": "prod"}, "local"),
    ],
)
def test_only_foxruns_own_settings_select_a_cluster(
    environ: dict[str, str], flags: dict[str, str], engine: str, tmp_path: Path
) -> None:
    assert load_settings(tmp_path, environ, flags).engine == engine


def test_which_way_is_taken(tmp_path: Path) -> None:
    def way(environ: dict[str, str], **flags: str) -> tuple[str, bool]:
        made = open_argo(load_settings(tmp_path, environ, flags), tmp_path, environ, store=None)
        return type(made.api).__name__, made.server is not None

    named = {"KUBECONFIG": str(tmp_path / "k")}
    (tmp_path / "k").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", named["KUBECONFIG"])
        patch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        assert way({}) == ("KubernetesApi", False)
        assert way({"ARGO_SERVER": "x:2746"}) == ("KubernetesApi", True)
        assert way({"ARGO_SERVER": "x:2746"}, context="other") == ("KubernetesApi", False)
        assert way({"FOXRUN_ARGO_SERVER": "https://x"}) == ("ArgoServerApi", True)
        patch.setenv("KUBECONFIG", str(tmp_path / "none"))
        assert way({"ARGO_SERVER": "x:2746"}) == ("ArgoServerApi", True)


def test_a_token_is_shown_nowhere(tmp_path: Path) -> None:
    shown = foxrun(tmp_path, "config", FOXRUN_ARGO_TOKEN="Bearer s3cr3t")
    assert "argo_token" in shown.stdout
    assert "s3cr3t" not in shown.stdout + shown.stderr
    assert "s3cr3t" not in repr(open_argo(
        load_settings(tmp_path, {"FOXRUN_ARGO_TOKEN": "s3cr3t", "FOXRUN_ARGO_SERVER": "x"}), tmp_path, {}, store=None
    ).api.transport.credentials)  # type: ignore[attr-defined]  # fmt: skip

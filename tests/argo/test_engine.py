"""What people do with a workflow on a cluster, by the Kubernetes API and by argo-server."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.nodes import is_completed
from orchestrator.engines.argo.transport import NotFound
from orchestrator.errors import InfrastructureError, UsageError, WorkflowExists, WorkflowNotFound
from tests.argo.conftest import server_credentials
from tests.argo.small import LABEL, container, pair, suspended, unique

Submit = Callable[[ArgoEngine, dict[str, Any]], str]
DEADLINE_S = 90
# Not sh, which would wait for its child and be killed half a minute after it was asked to end.
SLEEP = "exec sleep 8"


def last(engine: ArgoEngine, name: str) -> dict[str, Any]:
    *_, workflow = engine.watch(name, deadline_s=DEADLINE_S)
    return workflow


def test_the_same_submit_attaches_and_another_is_refused(either: ArgoEngine, submit: Submit) -> None:
    workflow = suspended(unique())
    name = submit(either, workflow)
    uid = either.get(name)["metadata"]["uid"]
    either.api.get(name)
    assert either.submit(workflow) == name
    assert either.get(name)["metadata"]["uid"] == uid
    container(workflow)["command"] = ["true"]
    with pytest.raises(WorkflowExists, match=f"workflow '{name}' exists already"):
        either.submit(workflow)


def test_the_same_name_at_the_same_moment_is_one_workflow(
    either: ArgoEngine, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = suspended(unique())
    together = threading.Barrier(4)
    create, new = either.api.create, []
    assert either.api.where  # the credentials are read once, before there are threads

    def at_once(sent: dict[str, Any], *, dry_run: bool = False) -> Any:
        together.wait(30)
        made = create(sent, dry_run=dry_run)
        new.append(made["metadata"]["uid"])
        return made

    monkeypatch.setattr(either.api, "create", at_once)
    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(lambda _: submit(either, workflow), range(4)))
    assert set(names) == {workflow["metadata"]["name"]}
    assert new == [either.get(names[0])["metadata"]["uid"]], "one has made it, and three are attached"


def test_two_people_submit_the_same_commit_at_the_same_moment(either: ArgoEngine) -> None:
    workflow = suspended(unique())
    workflow["metadata"]["generateName"] = workflow["metadata"].pop("name") + "-"
    assert either.api.where
    with ThreadPoolExecutor(2) as pool:
        names = list(pool.map(lambda _: either.submit(workflow), range(2)))
    try:
        assert len(set(names)) == 2
    finally:
        for name in names:
            either.delete(name, force=True)


def test_the_two_ways_attach_to_each_other(kube: ArgoEngine, server: ArgoEngine, submit: Submit) -> None:
    workflow = suspended(unique())
    assert submit(kube, workflow) == server.submit(workflow)


def test_a_path_of_this_machine_is_not_sent(either: ArgoEngine, submit: Submit) -> None:
    workflow = suspended(unique())
    workflow["metadata"]["annotations"] = {"foxrun.dev/repository": "/home/me/project"}
    assert "foxrun.dev/repository" not in either.get(submit(either, workflow))["metadata"]["annotations"]


def test_a_dry_run_stores_nothing(either: ArgoEngine) -> None:
    workflow = suspended(unique())
    assert either.check(workflow)["metadata"]["uid"]
    with pytest.raises(WorkflowNotFound, match="no workflow"):
        either.get(workflow["metadata"]["name"])


def test_what_the_server_refuses_is_said_in_its_words(kube: ArgoEngine, server: ArgoEngine) -> None:
    with pytest.raises(UsageError, match=r"spec\.templates in body must be of type array"):
        kube.submit(pair("true", templates="none"))
    with pytest.raises(UsageError, match="template name 'nope' undefined"):
        server.check(pair("true", entrypoint="nope"))


def test_a_workflow_too_large_says_what_to_do(either: ArgoEngine) -> None:
    huge = pair("true", arguments={"parameters": [{"name": "x", "value": "y" * 3_500_000}]})
    with pytest.raises(UsageError, match="too large for the cluster") as caught:
        either.submit(huge)
    assert caught.value.remedy == "put long values into a file and give it with -p data=FILE"


def test_a_life(kube: ArgoEngine, server: ArgoEngine, submit: Submit) -> None:
    """Fails, is labelled, retried by argo-server, resubmitted, stopped, terminated and deleted; side by side."""
    failing = submit(kube, pair("exit 3", legs="a"))
    stopped = submit(kube, pair(SLEEP, legs="a", onExit="leg"))
    terminated = submit(server, pair(SLEEP, legs="a", onExit="leg"))
    with pytest.raises(UsageError, match="is running"):
        kube.delete(stopped)
    for engine, name, end in ((kube, stopped, kube.stop), (server, terminated, server.terminate)):
        for workflow in engine.watch(name, deadline_s=DEADLINE_S):
            nodes = (workflow.get("status") or {}).get("nodes") or {}
            if any(node["phase"] == "Running" for node in nodes.values() if node["type"] == "Pod"):
                break
        end(name)
    again = None
    try:
        failed = last(kube, failing)
        assert failed["status"]["phase"] == "Failed"
        with pytest.raises(UsageError, match="Argo does that in its argo-server") as caught:
            kube.retry(failing)
        assert caught.value.remedy.startswith(f"foxrun resubmit {failing} ")
        with pytest.raises(UsageError, match="does not run; it is Failed"):
            kube.stop(failing)
        kube.set_labels(failing, {"foxrun.dev/verdict": "drift"})
        assert server.get(failing)["metadata"]["labels"]["foxrun.dev/verdict"] == "drift"
        with pytest.raises(UsageError, match="argo-server cannot set labels"):
            server.set_labels(failing, {"a": "b"})

        again = kube.resubmit(failing)
        new = kube.get(again)
        assert again.startswith(f"{failing}-")
        assert new["spec"] == failed["spec"]
        assert "foxrun.dev/verdict" not in new["metadata"]["labels"]

        assert server.retry(failing) == failing
        retried = next(server.watch(failing, deadline_s=DEADLINE_S))
        assert not is_completed(retried), "the old end is not taken for the new one"
        assert retried["metadata"]["uid"] == failed["metadata"]["uid"]

        assert last(kube, stopped)["status"]["message"] == "Stopped with strategy 'Stop'"
        assert last(server, terminated)["status"]["message"] == "Stopped with strategy 'Terminate'"
        ran = {name: [n["name"] for n in kube.get(name)["status"]["nodes"].values()] for name in (stopped, terminated)}
        assert f"{stopped}.onExit" in ran[stopped]
        assert f"{terminated}.onExit" not in ran[terminated]
    finally:
        if again is not None:
            kube.delete(again, force=True)
    server.delete(terminated)
    with pytest.raises(WorkflowNotFound):
        kube.get(terminated)


def test_two_hundred_workflows_are_listed_in_pages_and_filtered(either: ArgoEngine, kube: ArgoEngine) -> None:
    label = unique()
    transport = kube.api.transport  # type: ignore[attr-defined]
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{kube.api.namespace}/workflows"
    try:
        for number in range(205):
            workflow = suspended(label)
            workflow["metadata"]["labels"]["foxrun.dev/seed"] = str(number % 2)
            kube.submit(workflow)
        asked: list[str] = []
        page = either.api.page

        def counted(labels: str, *, limit: int, token: str = "") -> Any:
            asked.append(token)
            return page(labels, limit=limit, token=token)

        either.api.page = counted  # type: ignore[method-assign]
        found = either.list({LABEL: label})
        assert len({workflow["metadata"]["name"] for workflow in found}) == 205
        assert len(asked) >= 3, "205 workflows are three pages"
        assert len(either.list({LABEL: label, "foxrun.dev/seed": "1"})) == 102
        created = [workflow["metadata"]["creationTimestamp"] for workflow in found]
        assert created == sorted(created, reverse=True)
        assert not any("managedFields" in workflow["metadata"] for workflow in found)
    finally:
        transport.json("DELETE", path, query={"labelSelector": f"{LABEL}={label}"})


@pytest.fixture
def template(kube: ArgoEngine) -> Any:
    name = unique()
    body = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {"name": name},
        "spec": pair("true", suspend=True, arguments={"parameters": [{"name": "seed", "value": "42"}]})["spec"],
    }
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{kube.api.namespace}/workflowtemplates"
    transport = kube.api.transport  # type: ignore[attr-defined]
    transport.json("POST", path, body=body)
    with contextlib.suppress(KeyError):
        # argo-server reads templates from a copy of its own, which hears of new ones a little later.
        seen, give_up_at = ArgoServerApi(server_credentials()), time.monotonic() + DEADLINE_S
        while os.environ["ARGO_SERVER"] and time.monotonic() < give_up_at:
            with contextlib.suppress(NotFound):
                seen.template("workflowtemplate", name)
                break
            time.sleep(0.1)
    yield name
    transport.json("DELETE", f"{path}/{name}")


def test_from_a_template_with_parameters_as_strings(either: ArgoEngine, template: str) -> None:
    name = either.from_template(f"workflowtemplate/{template}", {"seed": "007"}, name=unique())
    try:
        workflow = either.get(name)
        assert workflow["spec"]["workflowTemplateRef"] == {"name": template}
        assert workflow["spec"]["arguments"]["parameters"] == [{"name": "seed", "value": "007"}]
        assert workflow["metadata"]["labels"]["workflows.argoproj.io/workflow-template"] == template
    finally:
        either.delete(name, force=True)
    with pytest.raises(UsageError, match=f"workflowtemplate '{template}' has no parameter sead; it has seed"):
        either.from_template(template, {"sead": "1"})
    with pytest.raises(UsageError, match=r"contains '\{\{'"):
        either.from_template(template, {"seed": "{{x}}"})
    with pytest.raises(UsageError, match="parameter seed takes 300000 bytes, over 60000"):
        either.from_template(template, {"seed": "x" * 300_000})
    with pytest.raises(UsageError, match="there is no workflowtemplate 'nope'"):
        either.from_template("nope", {})
    with pytest.raises(UsageError, match="names no template"):
        either.from_template("pod/x", {})


def test_deletion_kept_by_a_finalizer_is_said_and_forced(
    kube: ArgoEngine, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = suspended(unique())
    workflow["metadata"]["finalizers"] = ["foxrun.dev/keeps"]
    name = submit(kube, workflow)
    monkeypatch.setattr("orchestrator.engines.argo.engine.DELETE_S", 1.0)
    try:
        kube.api.shut_down(name, "Terminate")
        kube.api.delete(name)
        with pytest.raises(InfrastructureError, match=r"marked for deletion, and kept by foxrun\.dev/keeps"):
            kube._until_gone(name, kube.get(name)["metadata"]["uid"], force=False)
        kube.delete(name, force=True)
        with pytest.raises(WorkflowNotFound):
            kube.get(name)
    finally:
        with contextlib.suppress(Exception):
            kube.api.patch(name, {"metadata": {"finalizers": None}})


def test_artifact_collection_that_cannot_work_blocks_no_deletion(
    kube: ArgoEngine, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Argo deletes artifacts by a pod, whose account may not do it here, as `foxrun` of infra/ may not."""
    workflow = pair("echo kept > /tmp/kept", legs="a", artifactGC={"strategy": "OnWorkflowDeletion"})
    leg = workflow["spec"]["templates"][1]
    leg["outputs"] = {"artifacts": [{"name": "kept", "path": "/tmp/kept", "archive": {"none": {}}}]}
    name = submit(kube, workflow)
    assert last(kube, name)["status"]["phase"] == "Succeeded"
    monkeypatch.setattr("orchestrator.engines.argo.engine.DELETE_S", 3.0)
    with pytest.raises(InfrastructureError, match=r"kept by workflows\.argoproj\.io/artifact-gc") as caught:
        kube.delete(name)
    assert f"foxrun delete --force {name}" in caught.value.remedy
    kube.delete(name, force=True)
    with pytest.raises(WorkflowNotFound):
        kube.get(name)


def test_a_parameter_of_300_kb_is_refused_before_anything_is_sent(kube: ArgoEngine, tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(json.dumps({"fault": "x" * 300_000}))
    words = ("submit", "--regression-pair", "--engine", "argo", "--parameter-file", str(tmp_path / "large.json"))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "orchestrator", *words],
        cwd=Path(__file__).parents[2], capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-2:] == [
        "error: parameters: takes 300012 bytes of JSON, over 60000",
        "  -> Put what is large into the data file",
    ]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"server": "https://127.0.0.1:{port}"}, "does not speak TLS"),
        ({"server": "http://127.0.0.1:1"}, "does not answer: .*refused"),
        ({"token": "Bearer wrong"}, "the credentials are refused"),
        ({"namespace": "kube-system"}, "not allowed: .*kube-system"),
        ({"server": "ftp://x"}, "is no address"),
    ],
)
def test_a_wrong_address_or_token_is_said(server: ArgoEngine, other: dict[str, str], said: str) -> None:
    port = server.api.where.rsplit(":", 1)[1]
    api = ArgoServerApi(server_credentials(**{key: value.format(port=port) for key, value in other.items()}))
    api.transport.patience_s = 0
    from orchestrator.errors import FoxrunError

    with pytest.raises(FoxrunError, match=said) as caught:
        api.get("x")
    assert caught.value.remedy
    assert "wrong" not in str(caught.value)

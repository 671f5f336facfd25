"""Watching survives what clusters do, and ends when it makes no sense any more."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.api import Event
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.errors import DeadlinePassed, Unschedulable, WorkflowDeleted, WorkflowNotFound
from tests.argo.conftest import NAMESPACE, server_credentials
from tests.argo.small import LABEL, Proxy, container, pair, suspended, unique

Submit = Callable[[ArgoEngine, dict[str, Any]], str]


def label(engine: ArgoEngine, name: str, value: str) -> None:
    engine.set_labels(name, {"foxrun.dev/changed": value})


def of(workflow: dict[str, Any]) -> str:
    return workflow["metadata"]["labels"].get("foxrun.dev/changed", "")


def test_pending_is_not_done_and_there_is_always_a_deadline(either: ArgoEngine, submit: Submit) -> None:
    name = submit(either, suspended(unique()))
    began, seen = time.monotonic(), []
    with pytest.raises(DeadlinePassed, match=f"workflow '{name}' is not completed after 2 s; it goes on"):
        seen.extend(either.watch(name, deadline_s=2))
    assert seen
    assert 1.9 < time.monotonic() - began < 30


def test_no_such_workflow(either: ArgoEngine) -> None:
    with pytest.raises(WorkflowNotFound, match="no workflow 'nope' in namespace"):
        next(either.watch("nope", deadline_s=5))


def test_deleted_underneath(either: ArgoEngine, kube: ArgoEngine, submit: Submit) -> None:
    name = submit(either, suspended(unique()))
    watching = either.watch(name, deadline_s=20)
    next(watching)
    kube.delete(name, force=True)
    with pytest.raises(WorkflowDeleted, match="was deleted while it was followed"):
        list(watching)


def test_another_of_the_same_name_is_not_mistaken_for_it(kube: ArgoEngine, submit: Submit) -> None:
    workflow = suspended(unique())
    name = submit(kube, workflow)
    watching = kube.watch(name, deadline_s=20)
    next(watching)
    kube.delete(name, force=True)
    submit(kube, workflow)
    with pytest.raises(WorkflowDeleted):
        list(watching)


def test_a_cut_watch_goes_on_where_it_was(
    through_proxy: tuple[ArgoEngine, Proxy], kube: ArgoEngine, submit: Submit
) -> None:
    engine, between = through_proxy
    name = submit(kube, suspended(unique()))
    seen: list[str] = []
    versions: list[str] = []

    def watch() -> None:
        for workflow in engine.watch(name, deadline_s=40):
            versions.append(workflow["metadata"]["resourceVersion"])
            seen.append(of(workflow))
            if seen[-1] == "5":
                return

    watching = threading.Thread(target=watch)
    watching.start()
    for number in range(1, 6):
        label(kube, name, str(number))
        wait_for(lambda number=number: str(number) in seen)  # type: ignore[misc]
        between.cut()
    watching.join(20)
    assert len(set(versions)) == len(versions), "each change once"
    # Argo's controller may write a status between two of the labels.
    labels = [value for value, _ in itertools.groupby(seen) if value]
    assert labels == ["1", "2", "3", "4", "5"], "in their order"
    assert between.accepted >= 5


class Forgetful(KubernetesApi):
    """Asks once from a version that the API server has long forgotten; the answer is the server's own."""

    forgotten = 0

    def events(self, *, version: str, **other: Any) -> Generator[Event, None, None]:
        if not self.forgotten:
            self.forgotten += 1
            version = "1"
        return super().events(version=version, **other)


def test_a_forgotten_version_is_read_anew(kube: ArgoEngine, submit: Submit, tmp_path: Path) -> None:
    api = Forgetful(KubeCredentials(namespace=NAMESPACE))
    name = submit(kube, suspended(unique()))
    watching = ArgoEngine(api, tmp_path).watch(name, deadline_s=20)
    next(watching)
    label(kube, name, "after")
    assert any(of(workflow) == "after" for workflow in watching)
    assert api.forgotten == 1


def test_an_expired_token_is_read_anew(kube: ArgoEngine, server: ArgoEngine, submit: Submit, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(os.environ["ARGO_TOKEN"] + "\n", "utf-8")
    api = ArgoServerApi(server_credentials(token_file=str(token)))
    name = submit(kube, suspended(unique()))
    watching = ArgoEngine(api, tmp_path).watch(name, deadline_s=30)
    next(watching)
    # Both what is in use and what is in the file are refused now, until somebody renews the file.
    token.write_text("Bearer expired", "utf-8")
    api.transport.reload()
    threading.Timer(1.0, lambda: token.write_text(os.environ["ARGO_TOKEN"], "utf-8")).start()
    threading.Timer(3.0, lambda: label(kube, name, "renewed")).start()
    assert any(of(workflow) == "renewed" for workflow in watching)


def test_a_selector_that_fits_no_node_is_said(either: ArgoEngine, submit: Submit) -> None:
    workflow = pair("true", nodeSelector={"nvidia.com/gpu.product": "H999"})
    name = submit(either, workflow)
    either.grace_s = 1.0
    with pytest.raises(Unschedulable, match="didn't match Pod's node affinity/selector") as caught:
        list(either.watch(name, deadline_s=30))
    assert "kubectl get nodes -L nvidia.com/gpu.product" in caught.value.remedy


def test_more_gpus_than_any_node_has_are_said(kube: ArgoEngine, submit: Submit) -> None:
    workflow = pair("true")
    container(workflow)["resources"] = {"limits": {"nvidia.com/gpu": "640"}}
    kube.grace_s = 1.0
    with pytest.raises(Unschedulable, match=r"it asks for nvidia\.com/gpu 640 and the largest node has \d+"):
        list(kube.watch(submit(kube, workflow), deadline_s=30))


def test_an_image_that_is_not_there_is_said(kube: ArgoEngine, submit: Submit) -> None:
    workflow = pair("true")
    container(workflow).update(image="localhost/no-such-image:1", imagePullPolicy="Never")
    kube.grace_s = 1.0
    with pytest.raises(Unschedulable, match="no-such-image:1"):
        list(kube.watch(submit(kube, workflow), deadline_s=60))


def test_many_are_watched_at_once(either: ArgoEngine, kube: ArgoEngine, submit: Submit) -> None:
    mark = unique()
    names = {submit(kube, suspended(mark)) for _ in range(5)}
    watching = either.watch_many({LABEL: mark}, deadline_s=30)
    found: set[str] = set()
    while found != names:
        found.add(next(watching).name)
    one = min(names)
    kube.set_labels(one, {"foxrun.dev/verdict": "drift"})
    assert any(seen.name == one and seen.verdict == "drift" for seen in watching)
    kube.delete(one, force=True)
    assert any(seen.name == one and seen.deleted for seen in watching)


def wait_for(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it did not happen"
        time.sleep(0.02)

"""Rights that go away while a workflow is followed, as when an API server starts anew, and rights that never were."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.transport import Forbidden
from tests.argo.small import proxy, suspended, unique

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
BINDING = "foxrun-viewer"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A namespace as infra/ sets it up."""
    from tests.infra.namespace import namespace

    with namespace(tmp_path_factory.mktemp("infra")) as name:
        yield name


def viewer(place: str, tmp_path: Path, port: int | None = None) -> ArgoEngine:
    from tests.infra.namespace import Account, kubeconfig

    known: dict[str, Any] = json.loads(kubeconfig(Account(place, "foxrun-viewer")))
    if port is not None:
        known["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    (tmp_path / "viewer").write_text(json.dumps(known))
    return ArgoEngine(KubernetesApi(KubeCredentials(kubeconfig=str(tmp_path / "viewer"))), tmp_path)


def kubectl(place: str, *words: str, stdin: str = "") -> str:
    command = ["kubectl", "-n", place, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=stdin).stdout


def test_a_right_that_comes_back_ends_no_watch(kube: ArgoEngine, place: str, tmp_path: Path) -> None:
    address = urlsplit(kube.api.transport.access.host)  # type: ignore[attr-defined]
    if address.hostname not in ("127.0.0.1", "localhost"):
        pytest.skip("the API server is on another machine, whose certificate does not name this one")
    owner = ArgoEngine(KubernetesApi(KubeCredentials(namespace=place)), tmp_path)
    name = owner.submit(suspended(unique()))
    binding = json.loads(kubectl(place, "get", "rolebinding", BINDING, "-o", "json"))
    kept = {key: binding[key] for key in ("apiVersion", "kind", "roleRef", "subjects")}
    with proxy(address.port or 443) as between:
        watching = viewer(place, tmp_path, between.port).watch(name, deadline_s=120)
        assert next(watching)["metadata"]["name"] == name
        kubectl(place, "delete", "rolebinding", BINDING)
        until_refused(viewer(place, tmp_path), name)
        between.cut()
        bound = json.dumps({**kept, "metadata": {"name": BINDING}})
        mend = threading.Timer(4.0, lambda: kubectl(place, "apply", "-f", "-", stdin=bound))
        mend.start()
        owner.set_labels(name, {"foxrun.dev/verdict": "drift"})
        labels = [workflow["metadata"]["labels"].get("foxrun.dev/verdict") for workflow in first(watching, "drift")]
        mend.join()
    assert labels[-1] == "drift"


def first(watching: Iterator[dict[str, Any]], verdict: str) -> Iterator[dict[str, Any]]:
    """What is seen until the label is; a watch that ends raises."""
    for workflow in watching:
        yield workflow
        if workflow["metadata"]["labels"].get("foxrun.dev/verdict") == verdict:
            return


def until_refused(engine: ArgoEngine, name: str) -> None:
    """Until the API server has noticed that the binding is gone."""
    give_up_at = time.monotonic() + 60
    with pytest.raises(Forbidden):
        while time.monotonic() < give_up_at:
            engine.api.get(name)
            time.sleep(0.1)


def test_a_right_that_never_was_ends_the_watch_at_once(kube: ArgoEngine, place: str, tmp_path: Path) -> None:
    viewer(place, tmp_path).list()
    elsewhere = KubeCredentials(kubeconfig=str(tmp_path / "viewer"), namespace="kube-system")
    stranger = ArgoEngine(KubernetesApi(elsewhere), tmp_path)
    began = time.monotonic()
    with pytest.raises(Forbidden, match="not allowed: workflows"):
        next(stranger.watch("any", deadline_s=120))
    assert time.monotonic() - began < 30

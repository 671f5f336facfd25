import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.credentials import KubeCredentials, ServerCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.errors import FoxrunError
from tests.argo.small import Proxy, proxy

NAMESPACE = os.environ.get("ARGO_NAMESPACE", "argo")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test that takes something from a cluster is marked, and skipped where there is none."""
    for item in items:
        if not item.nodeid.startswith("tests/argo/"):
            continue
        needs = set(getattr(item, "fixturenames", ()))
        if needs & {"kube", "server", "either", "kubeconfig", "through_proxy"}:
            item.add_marker(pytest.mark.cluster)
            if not os.environ.get("KUBECONFIG"):
                item.add_marker(pytest.mark.skip(reason="no cluster: KUBECONFIG is not set"))
        if needs & {"server", "either"} and not os.environ.get("ARGO_SERVER"):
            item.add_marker(pytest.mark.skip(reason="no argo-server: ARGO_SERVER is not set"))


def server_credentials(**other: Any) -> ServerCredentials:
    secure = os.environ.get("ARGO_SECURE", "true") != "false"
    known = {"server": os.environ.get("ARGO_SERVER", ""), "secure": secure, "verify": False, "namespace": NAMESPACE}
    return ServerCredentials(**{**known, **other})


@pytest.fixture
def kubeconfig() -> dict[str, Any]:
    """The kubeconfig as data, keys and certificates in it."""
    command = ["kubectl", "config", "view", "--raw", "--flatten", "--minify"]
    return yaml.safe_load(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.fixture
def kube(tmp_path: Path) -> ArgoEngine:
    """By the Kubernetes API alone."""
    return ArgoEngine(KubernetesApi(KubeCredentials(namespace=NAMESPACE)), tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> ArgoEngine:
    """By argo-server alone."""
    return ArgoEngine(ArgoServerApi(server_credentials()), tmp_path)


@pytest.fixture(params=["kube", "server"])
def either(request: pytest.FixtureRequest) -> ArgoEngine:
    return request.getfixturevalue(request.param)


@pytest.fixture
def through_proxy(kubeconfig: dict[str, Any], tmp_path: Path) -> Iterator[tuple[ArgoEngine, Proxy]]:
    """The Kubernetes API behind a proxy whose connections can be cut."""
    cluster = kubeconfig["clusters"][0]["cluster"]
    address = urlsplit(cluster["server"])
    if address.hostname not in ("127.0.0.1", "localhost"):
        pytest.skip("the API server is on another machine, whose certificate does not name this one")
    with proxy(address.port or 443) as between:
        cluster["server"] = f"https://127.0.0.1:{between.port}"
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(kubeconfig), "utf-8")
        yield ArgoEngine(KubernetesApi(KubeCredentials(kubeconfig=str(file), namespace=NAMESPACE)), tmp_path), between


@pytest.fixture
def submit() -> Iterator[Callable[[ArgoEngine, dict[str, Any]], str]]:
    """Submits, and deletes at the end of the test what it submitted."""
    made: list[str] = []

    def submit(engine: ArgoEngine, workflow: dict[str, Any]) -> str:
        made.append(workflow["metadata"]["name"])
        return engine.submit(workflow)

    yield submit
    cleaner = KubernetesApi(KubeCredentials(namespace=NAMESPACE))
    for name in made:
        try:
            cleaner.delete(name)
        except FoxrunError as error:
            assert type(error).__name__ == "NotFound", error

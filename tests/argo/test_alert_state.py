"""The state of alerts in a ConfigMap, at a real API server: atomic, for several at once, and refused in words."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.alert_episodes import empty
from orchestrator.alert_state import ClusterState
from orchestrator.engines.argo.credentials import Access, KubeCredentials
from orchestrator.engines.argo.transport import Forbidden
from orchestrator.errors import FoxrunError

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
]
KUBE = KubeCredentials(namespace="argo")


@pytest.fixture
def name() -> Iterator[str]:
    made = f"foxrun-alert-state-{uuid.uuid4().hex[:8]}"
    yield made
    state = ClusterState(KUBE, made)
    state._http.json("DELETE", f"{state._path}/{made}", body={})


def test_the_first_change_makes_it_and_reading_changes_nothing(name: str) -> None:
    state = ClusterState(KUBE, name)
    assert state.read() == empty()
    assert state.change(lambda s: s["settled"].update({"höflich 🦊": "2026"}) or "said") == "said"
    assert ClusterState(KUBE, name).read()["settled"] == {"höflich 🦊": "2026"}
    before = state._get()[0]
    state.change(lambda s: None)
    assert state._get()[0] == before


def test_several_at_once_lose_nothing(name: str) -> None:
    ClusterState(KUBE, name).change(lambda s: s["settled"].update(start="0"))

    def count(number: int) -> None:
        state = ClusterState(KUBE, name, patience_s=120)
        for turn in range(5):
            state.change(lambda s, key=f"{number}-{turn}": s["settled"].update({key: "1"}))  # type: ignore[misc]

    threads = [threading.Thread(target=count, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    assert len(ClusterState(KUBE, name).read()["settled"]) == 21


def test_an_account_that_may_not_is_told_so(name: str) -> None:
    """The pods' account, which trainers run as: it neither reads nor writes what was told."""
    ClusterState(KUBE, name).change(lambda s: s["settled"].update(start="0"))
    asked = ClusterState(KUBE, name)._http.json(
        "POST", "/api/v1/namespaces/argo/serviceaccounts/foxrun/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}},
    )  # fmt: skip

    class Pod:
        def load(self) -> Access:
            access = KUBE.load()
            import urllib3

            pool = urllib3.PoolManager(**{k: v for k, v in access.pool.connection_pool_kw.items() if k == "ca_certs"})
            token = asked["status"]["token"]
            return Access(
                host=access.host, pool=pool, headers=lambda: {"authorization": f"Bearer {token}"}, namespace="argo"
            )

    state = ClusterState(Pod(), name)
    attempts: list[Any] = [state.read, lambda: state.change(lambda s: s["settled"].clear())]
    for attempt in attempts:
        with pytest.raises(Forbidden) as raised:
            attempt()
        assert isinstance(raised.value, FoxrunError) and raised.value.remedy

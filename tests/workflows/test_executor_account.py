"""With an account of its own for Argo's executor, trainers hold no token of the cluster."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.workflows.cases import SYNTHETIC
from workflows.regression_pair import regression_pair
from workflows.render import to_dict
from workflows.train import train

if os.environ.get("KUBECONFIG"):
    from kubernetes import client

    from tests.workflows.cluster import BUSYBOX, Cluster, as_busybox, nodes, unique

SECRET = Path(__file__).parents[2] / "infra" / "components" / "executor-token" / "secret.yaml"
LOOK = 'ls /var/run/secrets/kubernetes.io/serviceaccount 2>/dev/null; mkdir -p "$2"; echo held > "$2/run"; echo looked'


def test_without_one_nothing_is_said_of_tokens() -> None:
    spec = to_dict(regression_pair(SYNTHETIC))["spec"]
    assert "automountServiceAccountToken" not in spec
    assert "executor" not in spec


def test_with_one_only_the_executor_and_an_alert_that_asks_have_a_token() -> None:
    p = replace(SYNTHETIC, executor_account="foxrun")
    spec = to_dict(regression_pair(p))["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["executor"] == {"serviceAccountName": "foxrun"}
    assert [t["name"] for t in spec["templates"] if "automountServiceAccountToken" in t] == []
    spec = to_dict(regression_pair(replace(p, alerts_account="foxrun-alerts")))["spec"]
    assert [t["name"] for t in spec["templates"] if t.get("automountServiceAccountToken")] == ["exit-handler"]


@pytest.mark.cluster
@pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set")
def test_a_leg_holds_no_token_and_its_outputs_arrive_all_the_same() -> None:
    cluster = Cluster()
    core, secret = client.CoreV1Api(), yaml.safe_load(SECRET.read_text("utf-8"))
    name = secret["metadata"]["name"]
    mine = True
    try:
        core.create_namespaced_secret(cluster.namespace, secret)
    except client.ApiException as error:
        assert error.status == 409
        mine = False
    try:
        give_up_at = time.monotonic() + 60
        while not (core.read_namespaced_secret(name, cluster.namespace).data or {}).get("token"):
            assert time.monotonic() < give_up_at, "the token controller gave no token"
            time.sleep(0.2)
        p = replace(
            unique(BUSYBOX),
            gate=False,
            executor_account="foxrun",
            trainer=("sh", "-c", LOOK, "trainer"),
            leg_timeout_s=300,
        )
        created = cluster.create(as_busybox(to_dict(train(p))))
        try:
            leg = nodes(cluster.wait(created["metadata"]["name"], 400))["train(0)"]
            assert leg["phase"] == "Succeeded"
            assert [line for line in cluster.log(leg).splitlines() if "level=" not in line] == ["looked"]
            key = next(a["s3"]["key"] for a in leg["outputs"]["artifacts"] if a["name"] == "run")
            assert cluster.read(f"{key}/run") == b"held\n"
        finally:
            cluster.delete(created)
    finally:
        if mine:
            core.delete_namespaced_secret(name, cluster.namespace)

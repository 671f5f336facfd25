"""Argo accepts the workflows, and runs them as they are meant."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.cases import GOLDEN, SHA, TREE
from workflows.nightly import nightly
from workflows.parameters import RunParameters
from workflows.regression_pair import regression_pair
from workflows.render import to_dict, to_yaml
from workflows.train import train

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
]
if os.environ.get("KUBECONFIG"):
    from tests.workflows.cluster import BUSYBOX, Cluster, as_busybox, nodes, unique

GOLDEN_FILES = [f for f in sorted((Path(__file__).parent / "golden").glob("*.yaml")) if "cron" not in f.stem]
# Values that shells, templates, YAML, JSON or Kubernetes would change if anything on the way were careless.
AWKWARD = {
    "emoji": "🦊 naïve 数",
    "quotes": """it's "quoted" `ticked`""",
    "json": '{"a": {"b": ["c", null, 1e-5]}}',
    "backslashes": "\\ \\n \\\\ \\u0041",
    "lines": "one\ntwo\r\n\tthree\n",
    "percent": "100 % %s %(x)s %%",
    "dollars": "$HOME ${HOME} $(HOSTNAME) $$ $$$$ $",
    "braces": "}} { {x} {%",
    "odd": "\x07\x85\u2028\ufeff",
    "spaces": "  both sides  ",
    "number": "1e5",
    "dashes": "--out",
    "long": "0123456789" * 1024,
}
AWKWARD_BRANCH = "feature/$(HOSTNAME)-$$-ü-🦊-%s"


@pytest.fixture(scope="module")
def cluster() -> "Cluster":
    return Cluster()


# A CronWorkflow is another kind of object, and names a template: tests/infra has both accepted.
@pytest.mark.parametrize("name", [name for name in GOLDEN if "cron" not in name])
def test_the_api_server_accepts_it(cluster: "Cluster", name: str) -> None:
    created = cluster.create(to_dict(GOLDEN[name]()), dry_run="All")
    assert created["metadata"]["name"].startswith(("regression-pair-", "train-", "ci-gate-", "nightly-", "seed-sweep-"))


@pytest.mark.skipif(shutil.which("argo") is None, reason="no argo on PATH")
def test_argo_finds_nothing_to_say_about_any() -> None:
    command = ["argo", "lint", "--offline", "--strict", "--no-color", *map(str, GOLDEN_FILES)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "✔ no linting errors found!"), done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
def test_kubectl_reads_the_yaml_as_it_was_meant(tmp_path: Path) -> None:
    values = {
        **AWKWARD,
        **{f"v{i}": text for i, text in enumerate(["y", "on", "~", "", "0o17", "12e4", "1_0", ".inf"])},
    }
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": values}
    (tmp_path / "x.yaml").write_text(to_yaml(manifest), encoding="utf-8")
    command = ["kubectl", "create", "--dry-run=client", "-o", "json", "-f", str(tmp_path / "x.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["data"] == values


@pytest.mark.slow
def test_real_runs(cluster: "Cluster") -> None:
    """Five workflows side by side, since most of the time is spent waiting for pods."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("must-stay-packed"))
    data = packed.getvalue() + uuid.uuid4().bytes
    key = f"inputs/{hashlib.sha256(data).hexdigest()}/btc usdt.tar.gz"
    parameters = {
        "a whole pair": replace(
            BUSYBOX,
            parameters=tuple(AWKWARD.items()),
            branch=AWKWARD_BRANCH,
            data_key=key,
            data_name="btc usdt.tar.gz",
        ),
        "leg a fails": replace(BUSYBOX, parameters=(("fault", "leg-a-fails"),)),
        "the gate fails": replace(BUSYBOX, parameters=(("fault", "gate-fails"),)),
    }
    terminated = replace(BUSYBOX, gate=False, retries=1, parameters=(("fault", "terminated"),))
    runs = {}
    cluster.store(key, data)
    try:
        for what, p in parameters.items():
            runs[what] = _create(cluster, regression_pair, p)
        runs["a night's gate fails"] = _create(cluster, nightly, parameters["the gate fails"])
        runs["terminated"] = _create(cluster, train, terminated)
        done = {what: cluster.wait(run["metadata"]["name"]) for what, run in runs.items()}
        _check_whole_pair(cluster, done["a whole pair"], data)
        _check_leg_a_failed(cluster, done["leg a fails"])
        _check_gate_failed(cluster, done["the gate fails"])
        # It is told that it began, beside the gate: that this went well saves nothing.
        _check_gate_failed(cluster, done["a night's gate fails"], beside=["pending(0)"])
        _check_terminated(cluster, done["terminated"])
    finally:
        for run in runs.values():
            cluster.delete(run)
        cluster.remove(key)


def _create(cluster: "Cluster", kind: Any, parameters: RunParameters) -> dict[str, Any]:
    return cluster.create(as_busybox(to_dict(kind(unique(parameters)))))


def _check_whole_pair(cluster: "Cluster", workflow: dict[str, Any], data: bytes) -> None:
    assert workflow["status"]["phase"] == "Succeeded"
    found = nodes(workflow)
    for name in ("gate", "compare"):
        assert {p["name"]: p["value"] for p in found[name]["outputs"]["parameters"]} == dict.fromkeys(
            ("verdict", "step", "leaf", "pnl-difference"), "identical"
        )
    uid = workflow["metadata"]["uid"]
    assert cluster.read(f"{uid}/verdict.json").decode() == (
        "compare identical a=attempt b=attempt status-a=Succeeded status-b=Succeeded\n"
    )
    for leg in ("a", "b"):
        run = {key.rsplit("/", 1)[1]: cluster.read(key) for key in cluster.keys(f"{uid}/leg-{leg}/")}
        assert sorted(run) == ["branch", "btc_usdt.tar.gz", "code", "parameters.json"]
        assert json.loads(run["parameters.json"]) == AWKWARD
        assert run["branch"].decode() == AWKWARD_BRANCH
        assert run["code"].decode() == f"{SHA} {TREE} 65532"
        assert run["btc_usdt.tar.gz"] == data
    assert _alert(cluster, workflow) == ["STATUS Succeeded", 'FAILURES "null"', _verdict(cluster, uid)]
    assert cluster.read(f"{uid}/report.html") == b"<p>identical</p>\n"


def _check_leg_a_failed(cluster: "Cluster", workflow: dict[str, Any]) -> None:
    found = nodes(workflow)
    assert (found["leg-a(0)"]["phase"], found["leg-a(0)"]["message"]) == (
        "Failed",
        "main: Error (exit code 1): leg a failed\n",
    )
    assert "leg-a(1)" not in found, "a trainer's own failure is final"
    assert found["leg-b"]["phase"] == "Succeeded"
    uid = workflow["metadata"]["uid"]
    assert cluster.keys(f"{uid}/leg-a/") == []
    assert cluster.read(f"{uid}/verdict.json").decode() == (
        "compare identical a= b=attempt status-a=Failed status-b=Succeeded\n"
    )
    status, failures, verdict = _alert(cluster, workflow)
    assert status == "STATUS Succeeded", "compare's exit code decides, and this one exits 0"
    assert [f["displayName"] for f in _failures(failures) if f["displayName"] != "leg-a"] == ["leg-a(0)"]
    assert verdict == _verdict(cluster, uid)


def _check_gate_failed(cluster: "Cluster", workflow: dict[str, Any], beside: Sequence[str] = ()) -> None:
    assert workflow["status"]["phase"] == "Failed"
    found = nodes(workflow)
    assert found["gate(0)"]["message"] == "main: Error (exit code 4): check gate_failed\n"
    assert {name: found[name]["phase"] for name in ("leg-a", "leg-b", "compare")} == dict.fromkeys(
        ("leg-a", "leg-b", "compare"), "Omitted"
    )
    pods = sorted(node["displayName"] for node in found.values() if node["type"] == "Pod")
    assert pods == sorted(["gate(0)", f"{workflow['metadata']['name']}.onExit(0)", *beside])
    status, failures, verdict = _alert(cluster, workflow)
    assert (status, verdict) == ("STATUS Failed", "VERDICT check gate_failed")
    assert "gate(0)" in [f["displayName"] for f in _failures(failures)]


def _check_terminated(cluster: "Cluster", workflow: dict[str, Any]) -> None:
    assert workflow["status"]["phase"] == "Failed"
    found = nodes(workflow)
    assert [found[name]["outputs"]["exitCode"] for name in ("train(0)", "train(1)")] == ["143", "143"]
    assert found["train"]["message"] == "No more retries left"
    status, _, verdict = _alert(cluster, workflow)
    assert (status, verdict) == ("STATUS Failed", "VERDICT directory"), "a missing optional file is an empty directory"


def _alert(cluster: "Cluster", workflow: dict[str, Any]) -> list[str]:
    node = nodes(workflow)[f"{workflow['metadata']['name']}.onExit(0)"]
    assert node["phase"] == "Succeeded"
    return cluster.log(node).splitlines()


def _verdict(cluster: "Cluster", uid: str) -> str:
    return "VERDICT " + cluster.read(f"{uid}/verdict.json").decode().rstrip("\n")


def _failures(line: str) -> list[dict[str, Any]]:
    return json.loads(json.loads(line.removeprefix("FAILURES ")))

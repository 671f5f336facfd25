"""The image runs the templates on a cluster as they are, and gives the bits that this machine gives."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import comparison
from orchestrator.compare.policy import Options
from tests.image import images
from workflows.names import label_value
from workflows.parameters import RunParameters
from workflows.regression_pair import regression_pair
from workflows.render import to_dict

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(not os.environ.get("FOXRUN_S3_POD_ENDPOINT"), reason="no S3 server for pods"),
    pytest.mark.skipif(images.tool() is None, reason="no tool that builds and loads images (FOXRUN_IMAGE_TOOL)"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]
if os.environ.get("KUBECONFIG"):
    from tests.infra.namespace import Account
    from tests.workflows.cluster import Cluster, nodes, unique

BOOK = images.ROOT.parent / "shared" / "data" / "mbp10" / "btcusdt-binance-usdm-20240808.mbp-10.dbn.zst"
SHA = "c" * 40
BRANCH = "ml-alpha-🦊/" + "long-" * 20
SMALL = {"envs": "8", "width": "32", "window": "16"}
STEPS, EVAL_STEPS, GATE_STEPS = 6, 3, 4
DEADLINE_S = 600
# What decides the bits on a CPU. Python's own version does not, but is recorded: those runs are incomparable by name.
DECIDING = ("torch", "cpu_model", "cpu_flags_sha256", "cpu_capability", "threads", "device", "libc")


def test_pairs_in_the_image(image: images.Image, namespace: str, tmp_path: Path) -> None:
    """Side by side, since most of the time goes by in waiting for pods."""
    reference, tree = image.reference, image.tree
    cluster = Cluster()
    cluster.namespace = namespace
    pair = RunParameters(
        sha=SHA, tree=tree, branch="ml-alpha-1", image=reference, steps=STEPS, eval_steps=EVAL_STEPS,
        gate=False, parameters=tuple(SMALL.items()), cpu="600m", memory="1Gi", verify=True,
    )  # fmt: skip
    made = {
        "from the template": _submit_from_template(namespace, reference, tree),
        "ulp": _submit(namespace, replace(pair, parameters=(*SMALL.items(), ("fault", "ulp@b:2")))),
        "another tree": _submit(namespace, replace(pair, tree="d" * 40)),
    }
    if BOOK.exists():
        book = BOOK.read_bytes()
        key = f"inputs/{hashlib.sha256(book).hexdigest()}/{BOOK.name}"
        cluster.store(key, book)
        made["real book"] = _submit(namespace, replace(pair, data_key=key, data_name=BOOK.name))
    here = _local_leg(image.context, tmp_path)
    done = {what: _wait(cluster, name) for what, name in made.items()}
    try:
        _check_identical(cluster, done["from the template"], tree, ["gate", "compare"])
        _check_labels(done["from the template"])
        _check_same_bits(cluster, done["from the template"], here, tmp_path)
        _check_parted(done["ulp"], "3", "drift", "part at step 2 in leaf vsn_w", step="2", leaf="vsn_w")
        _check_parted(done["another tree"], "7", "incomparable", f"ran tree {tree[:12]}, not {'d' * 12} as asked")
        if "real book" in done:
            _check_identical(cluster, done["real book"], tree, ["compare"])
            manifest = _manifest(cluster, done["real book"], "a")
            assert [entry["sha256"] for entry in manifest["inputs"]] == [hashlib.sha256(book).hexdigest()]
    finally:
        for workflow in done.values():
            cluster.delete(workflow)


def test_a_build_without_a_tree_is_refused(image: images.Image) -> None:
    done = images.build(image.context, f"{images.REPOSITORY}:no-tree")
    assert done.returncode != 0
    assert "TREE=: give the tree that is built" in done.stdout + done.stderr


def _submit_from_template(namespace: str, reference: str, tree: str) -> str:
    values = {
        "sha": SHA, "tree": tree, "image": reference, "branch": BRANCH, "steps": str(STEPS),
        "eval-steps": str(EVAL_STEPS), "gate-steps": str(GATE_STEPS), "parameters": json.dumps(SMALL),
    }  # fmt: skip
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "from-template-"},
        "spec": {
            "workflowTemplateRef": {"name": "regression-pair"},
            "arguments": {"parameters": [{"name": name, "value": value} for name, value in values.items()]},
        },
    }
    return _create(namespace, workflow)


def _submit(namespace: str, p: RunParameters) -> str:
    return _create(namespace, to_dict(regression_pair(unique(p))))


def _create(namespace: str, workflow: dict[str, Any]) -> str:
    # With the rights of infra/'s submitter; the pods have those of its executor.
    path = "/apis/argoproj.io/v1alpha1/namespaces/{ns}/workflows"
    status, answer = Account(namespace, "foxrun-submitter").ask("POST", path, workflow)
    assert status == 201, answer
    return str(answer["metadata"]["name"])


def _wait(cluster: Cluster, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_S
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{{ns}}/workflows/{name}"
    account = Account(cluster.namespace, "foxrun-viewer")
    while time.monotonic() < deadline:
        workflow: dict[str, Any] = account.ask("GET", path)[1]
        if workflow.get("status", {}).get("finishedAt"):
            return workflow
        time.sleep(1.0)
    raise AssertionError(f"{name} did not end within {DEADLINE_S} s: {workflow.get('status')}")


def _local_leg(context: Path, tmp_path: Path) -> Path:
    """The run directory of leg A of the same pair on this machine, by the local engine."""
    home = tmp_path / "home"
    repository = shutil.copytree(context, tmp_path / "repository", symlinks=True)
    words = [
        "submit",
        "--sha",
        "HEAD",
        "--regression-pair",
        "--no-gate",
        "--engine",
        "local",
        "--seed",
        "42",
        "--mode",
        "1",
    ]
    words += ["--steps", str(STEPS), "--eval-steps", str(EVAL_STEPS)]
    for key, value in SMALL.items():
        words += ["-p", f"{key}={value}"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "FOXHUNT_"))}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "orchestrator", *words],
        cwd=repository,
        env={**environment, "FOXRUN_HOME": str(home), "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [manifest] = home.glob("artifacts/*/leg-a/*/*/run_manifest.json")
    return manifest.parent


def _outputs(workflow: dict[str, Any], node: str) -> Mapping[str, str]:
    return {p["name"]: p["value"] for p in nodes(workflow)[node]["outputs"]["parameters"]}


def _check_identical(cluster: Cluster, workflow: dict[str, Any], tree: str, parts: list[str]) -> None:
    told = {name: (n["phase"], n.get("message")) for name, n in nodes(workflow).items()}
    assert workflow["status"]["phase"] == "Succeeded", told
    for part in parts:
        outputs = _outputs(workflow, part)
        assert outputs["verdict"] == "identical"
        assert (outputs["step"], outputs["leaf"]) == ("-", "-")
    uid = workflow["metadata"]["uid"]
    verdict = json.loads(cluster.read(f"{uid}/verdict.json"))
    assert (verdict["verdict"], verdict["exit_code"], verdict["agreed"]["rows"]) == (
        "identical",
        0,
        STEPS + EVAL_STEPS + 1,
    )
    assert b"Identical" in cluster.read(f"{uid}/report.html")
    for leg in ("a", "b"):
        code = _manifest(cluster, workflow, leg)["code"]
        assert (code["commit_asked"], code["tree_asked"], code["tree_run"]) == (SHA, tree, tree)


def _check_labels(workflow: dict[str, Any]) -> None:
    labels = {k: v for k, v in workflow["metadata"]["labels"].items() if k.startswith("foxrun.dev/")}
    assert labels == {
        "foxrun.dev/kind": "regression-pair", "foxrun.dev/sha": SHA, "foxrun.dev/seed": "42", "foxrun.dev/mode": "1",
        "foxrun.dev/branch": label_value(BRANCH),
    }  # fmt: skip


def _check_parted(
    workflow: dict[str, Any], exit_code: str, verdict: str, said: str, *, step: str = "-", leaf: str = "-"
) -> None:
    assert workflow["status"]["phase"] == "Failed"
    assert {nodes(workflow)[leg]["phase"] for leg in ("leg-a", "leg-b")} == {"Succeeded"}
    attempt = nodes(workflow)["compare(0)"]
    assert attempt["outputs"]["exitCode"] == exit_code
    outputs = _outputs(workflow, "compare(0)")
    assert outputs["verdict"] == verdict
    assert (outputs["step"], outputs["leaf"]) == (step, leaf)
    assert attempt["message"].startswith(f"main: Error (exit code {exit_code}): ") and said in attempt["message"]
    assert "compare(1)" not in nodes(workflow)
    assert nodes(workflow)[f"{workflow['metadata']['name']}.onExit(0)"]["phase"] == "Succeeded"


def _check_same_bits(cluster: Cluster, workflow: dict[str, Any], here: Path, tmp_path: Path) -> None:
    """Leaf for leaf those of this machine, where what decides them agrees; else incomparable, and by name."""
    there = tmp_path / "there"
    there.mkdir()
    for key in cluster.keys(f"{workflow['metadata']['uid']}/leg-a/"):
        (there / key.rsplit("/", 1)[1]).write_bytes(cluster.read(key))
    environments = [json.loads((run / "run_manifest.json").read_text())["environment"] for run in (here, there)]
    differ = {name for name in environments[0] if environments[0][name] != environments[1].get(name)}
    plain = comparison.compare(here, there, Options(allow=frozenset({"tree"})))
    if differ:
        assert plain.verdict == "incomparable"
        named = {d.path for d in plain.manifest_differences if d.matters}
        assert named == {f"environment.{name}" for name in differ}
    else:
        assert plain.verdict == "identical"
    if not differ & set(DECIDING):
        forced = comparison.compare(here, there, Options(allow=frozenset({"tree", "environment"})))
        assert (forced.verdict, forced.differences_total) == ("identical", 0), forced.message
        for name in ("leaves.json", "bits.u64", "diag.jsonl", "eval_summary.json"):
            assert (here / name).read_bytes() == (there / name).read_bytes(), name


def _manifest(cluster: Cluster, workflow: dict[str, Any], leg: str) -> dict[str, Any]:
    keys = cluster.keys(f"{workflow['metadata']['uid']}/leg-{leg}/")
    [key] = [key for key in keys if key.endswith("/run_manifest.json")]
    manifest: dict[str, Any] = json.loads(cluster.read(key))
    return manifest

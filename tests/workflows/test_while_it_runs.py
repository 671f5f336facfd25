"""What a cluster shows of a pair while it runs and afterwards: progress of each leg, and Prometheus metrics."""

from __future__ import annotations

import os
import re
import ssl
import urllib.request
from pathlib import Path

import pytest

from workflows.regression_pair import regression_pair
from workflows.render import to_dict

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(not os.environ.get("FOXRUN_METRICS_URL"), reason="no metrics: FOXRUN_METRICS_URL is not set"),
]
if os.environ.get("KUBECONFIG"):
    from dataclasses import replace

    from orchestrator.engines.argo import ArgoEngine
    from orchestrator.engines.argo.credentials import KubeCredentials
    from orchestrator.engines.argo.kubernetes_api import KubernetesApi
    from orchestrator.following import views
    from tests.workflows.cluster import BUSYBOX, LEG, as_busybox, unique

# The executor reads the file every 3 s, and tells the controller of it every 5 s here, by default once a minute.
STEPS = 'for done in 0 1 2 3; do echo "$done/3" > "$ARGO_PROGRESS_FILE"; sleep 4; done\n'
DRIFT = 'while [ $# -gt 0 ]; do case "$1" in --write) printf drift > "${2#*=}";; esac; shift; done; exit 3'


def metrics() -> dict[str, float]:
    """{name and labels: value} of foxrun's own metrics. The controller makes its certificate itself."""
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(os.environ["FOXRUN_METRICS_URL"], timeout=30, context=context) as answer:
        lines = answer.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if re.match("argo_workflows_foxrun_", line)]
    return {name: float(value) for name, value in pairs}


def grown(before: dict[str, float], after: dict[str, float], name: str, kind: str) -> dict[str, float]:
    """What counters of a name have grown by for this kind alone: others end workflows at the same moment."""
    return {
        key.removeprefix("argo_workflows_"): after[key] - before.get(key, 0.0)
        for key in after
        if key.startswith(f"argo_workflows_{name}{{") and f'kind="{kind}"' in key and after[key] != before.get(key, 0.0)
    }


@pytest.mark.slow
def test_progress_while_it_runs_and_metrics_when_it_has_drifted(tmp_path: Path) -> None:
    engine = ArgoEngine(KubernetesApi(KubeCredentials()), tmp_path)
    trainer = ("sh", "-c", STEPS + LEG, "trainer")
    manifest = as_busybox(to_dict(regression_pair(replace(unique(BUSYBOX), trainer=trainer, gate=False))))
    # A kind of this test's own: others run pairs at the same moment, on the same controller.
    kind = manifest["metadata"]["name"]
    for template in [manifest["spec"], *manifest["spec"]["templates"]]:
        for metric in (template.get("metrics") or {}).get("prometheus") or []:
            next(label for label in metric["labels"] if label["key"] == "kind")["value"] = kind
        if template.get("name") == "compare":
            template["container"]["command"] = ["sh", "-c", DRIFT.replace("$", "$$"), "foxrun"]
    before = metrics()
    name = engine.submit(manifest)
    try:
        seen: dict[str, set[str]] = {"leg-a": set(), "leg-b": set()}
        for workflow in engine.watch(name, deadline_s=300):
            for node in workflow.get("status", {}).get("nodes", {}).values():
                if node["type"] == "Pod" and node["phase"] == "Running" and node.get("progress"):
                    seen.setdefault(node["displayName"].split("(")[0], set()).add(node["progress"])
    finally:
        engine.delete(name, force=True)
    for leg in ("leg-a", "leg-b"):
        assert seen[leg] & {"1/3", "2/3"}, f"{leg} has shown {seen[leg]}"
        assert seen[leg] <= {"0/1", "0/3", "1/3", "2/3", "3/3"}
    assert {view.name: (view.done, view.of) for view in views(workflow)}["leg-a"] == (3, 3)
    after = metrics()
    assert grown(before, after, "foxrun_verdicts_total", kind) == {
        f'foxrun_verdicts_total{{kind="{kind}",verdict="drift"}}': 1.0
    }
    assert grown(before, after, "foxrun_last_pair_drifted", kind) == {f'foxrun_last_pair_drifted{{kind="{kind}"}}': 1.0}
    ended = f'{{kind="{kind}",status="Failed"}}'
    assert grown(before, after, "foxrun_duration_seconds_count", kind) == {f"foxrun_duration_seconds_count{ended}": 1.0}
    assert after[f"argo_workflows_foxrun_duration_seconds_sum{ended}"] > 12

"""1,000 workflows watched by one process, and what a submit takes beyond the server's own answer; on a real cluster.

python -m benchmarks.watching [COUNT]. Exit code 1 above 200 MB, or 1 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from tests.workflows.cluster import BUSYBOX, unique
from workflows.regression_pair import regression_pair
from workflows.render import to_dict

LABEL = "foxrun.dev/test"
LIMIT_MB = 200
LIMIT_S = 1.0
SUBMITS = 5

WATCHER = """
import resource, sys, time
from pathlib import Path
from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
label, count = sys.argv[1], int(sys.argv[2])
began, seen, changed = time.monotonic(), set(), set()
engine = ArgoEngine(KubernetesApi(KubeCredentials()), Path("."))
for workflow in engine.watch_many({"foxrun.dev/test": label}, deadline_s=600):
    if workflow.name not in seen:
        seen.add(workflow.name)
        if len(seen) == count:
            print(f"{time.monotonic() - began:.1f}", flush=True)
    if workflow.verdict:
        changed.add(workflow.name)
        if len(changed) == 20:
            break
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main(count: int) -> int:
    """Measure, print, and say whether both are within their limits."""
    engine = ArgoEngine(KubernetesApi(KubeCredentials()), Path(tempfile.gettempdir()))
    beyond = submit_beyond_answer(engine)
    print(f"submit beyond the server's own answer: {beyond:.2f} s (best of {SUBMITS}; limit {LIMIT_S:g} s)", flush=True)
    megabytes, listed_s = watch(engine, count)
    print(f"{count} workflows watched by one process: {megabytes:.0f} MB at most (limit {LIMIT_MB}), "
          f"first seen whole after {listed_s:.1f} s")  # fmt: skip
    return int(megabytes > LIMIT_MB or beyond > LIMIT_S)


def submit_beyond_answer(engine: ArgoEngine) -> float:
    """Seconds of `foxrun submit --dry-run=server` less those of the same request alone, the least of several."""
    workflow = to_dict(regression_pair(unique(BUSYBOX)))
    command = [
        sys.executable,
        "-m",
        "orchestrator",
        "submit",
        "--regression-pair",
        "--dry-run=server",
        "--engine",
        "argo",
    ]
    environ = {k: v for k, v in os.environ.items() if k != "ARGO_SERVER"}
    found = []
    for _ in range(SUBMITS):
        began = time.monotonic()
        engine.check(workflow)
        answer = time.monotonic() - began
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True, env=environ)
        found.append(time.monotonic() - began - answer)
    return min(found)


def watch(engine: ArgoEngine, count: int) -> tuple[float, float]:
    """(most memory of the watching process in MB, seconds until it had seen all)."""
    label = f"bench-{uuid.uuid4().hex[:10]}"
    transport = engine.api.transport  # type: ignore[attr-defined]
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{engine.api.namespace}/workflows"
    names = []
    try:
        for _ in range(count):
            names.append(engine.submit(suspended(label)))
        with subprocess.Popen(
            [sys.executable, "-c", WATCHER, label, str(count)], stdout=subprocess.PIPE, text=True
        ) as watcher:
            assert watcher.stdout is not None
            listed_s = float(watcher.stdout.readline())
            for name in names[:20]:
                engine.set_labels(name, {"foxrun.dev/verdict": "identical"})
            return float(watcher.stdout.read()), listed_s
    finally:
        transport.json("DELETE", path, query={"labelSelector": f"{LABEL}={label}"})


def suspended(label: str) -> dict[str, Any]:
    """A whole regression pair, of 20 KB, that waits to be resumed and so needs no pod."""
    workflow = to_dict(regression_pair(unique(BUSYBOX)))
    workflow["metadata"]["labels"][LABEL] = label
    workflow["spec"]["suspend"] = True
    return workflow


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))

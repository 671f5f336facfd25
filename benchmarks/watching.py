"""Hundreds of workflows on a real cluster: 1,000 watched by one process, 200 listed and filtered; what a submit takes.

python -m benchmarks.watching [COUNT]. Exit code 1 when a process takes over 200 MB, or a submit over 1 s beyond the
server's own answer. The workflows are whole pairs that wait to be resumed, so they need no pod.
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
LISTED = 200
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
    """Measure, print, and say whether all are within their limits."""
    engine = ArgoEngine(KubernetesApi(KubeCredentials()), Path(tempfile.gettempdir()))
    beyond = submit_beyond_answer(engine)
    print(f"submit beyond the server's own answer: {beyond:.2f} s (best of {SUBMITS}; limit {LIMIT_S:g} s)", flush=True)
    label = f"bench-{uuid.uuid4().hex[:10]}"
    most = 0.0
    try:
        names = [engine.submit(suspended(label, seed=number % 2)) for number in range(min(count, LISTED))]
        for what, words in LISTS.items():
            found, seconds, megabytes = listed(label, words)
            most = max(most, megabytes)
            print(f"{what} of {len(names)} workflows: {found} found, {seconds:.2f} s, {megabytes:.0f} MB", flush=True)
        print(f"the list of {len(names)} took {requests(engine, label)} requests", flush=True)
        names += [engine.submit(suspended(label, seed=number % 2)) for number in range(len(names), count)]
        megabytes, listed_s = watch(engine, names, label)
        most = max(most, megabytes)
        print(f"{count} workflows watched by one process: {megabytes:.0f} MB at most (limit {LIMIT_MB}), "
              f"first seen whole after {listed_s:.1f} s", flush=True)  # fmt: skip
    finally:
        # A thousand at once take the server longer than it gives a request.
        command = ["kubectl", "delete", "workflows", "-n", engine.api.namespace, "-l", f"{LABEL}={label}"]
        subprocess.run([*command, "--wait=false"], check=True, capture_output=True)
    return int(most > LIMIT_MB or beyond > LIMIT_S)


LISTS: dict[str, tuple[str, ...]] = {
    "foxrun list": (),
    "foxrun list -l seed=1": ("-l", "seed=1"),
    "foxrun list --running": ("--running",),
    "foxrun list --verdict drift": ("--verdict", "drift"),
}


def listed(label: str, words: tuple[str, ...]) -> tuple[int, float, float]:
    """(workflows printed, seconds, most memory in MB) of `foxrun list` in a process of its own."""
    command = [sys.executable, "-P", "-c", LISTER, "list", "--engine", "argo", "-l", f"{LABEL}={label}", *words]
    environ = {k: v for k, v in os.environ.items() if k != "ARGO_SERVER"}
    began = time.monotonic()
    done = subprocess.run([*command, "-o", "name"], check=True, capture_output=True, text=True, env=environ)
    return len(done.stdout.split()), time.monotonic() - began, float(done.stderr.split()[-1])


LISTER = """
import resource, sys
from orchestrator.cli.main import execute
code = execute(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""


def requests(engine: ArgoEngine, label: str) -> int:
    """How many requests one list takes."""
    transport = engine.api.transport  # type: ignore[attr-defined]
    asked: list[str] = []
    send = transport.json
    try:
        transport.json = lambda method, path, **more: (asked.append(path), send(method, path, **more))[1]
        engine.list({LABEL: label})
    finally:
        transport.json = send
    return len(asked)


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


def watch(engine: ArgoEngine, names: list[str], label: str) -> tuple[float, float]:
    """(most memory of the watching process in MB, seconds until it had seen all)."""
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER, label, str(len(names))], stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdout is not None
        listed_s = float(watcher.stdout.readline())
        for name in names[:20]:
            engine.set_labels(name, {"foxrun.dev/verdict": "identical"})
        return float(watcher.stdout.read()), listed_s


def suspended(label: str, *, seed: int) -> dict[str, Any]:
    """A whole regression pair, of 20 KB, that waits to be resumed and so needs no pod."""
    workflow = to_dict(regression_pair(unique(BUSYBOX)))
    workflow["metadata"]["labels"] |= {LABEL: label, "foxrun.dev/seed": str(seed)}
    workflow["spec"]["suspend"] = True
    return workflow


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))

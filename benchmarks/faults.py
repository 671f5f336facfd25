"""A pair on a real cluster while something breaks: each fault once, and what it came to.

    FOXRUN_FAULT=path/to/fault python -m benchmarks.faults [NAME ...]

The pair is the rendered one with busybox in the place of trainer and foxrun, so a fault costs a minute. FOXRUN_FAULT is
a command that takes `restart-controller`, `restart-apiserver`, `restart-server` and `evict-pod POD`. Exit code 1 when
a fault ends in another verdict than `identical`, or a line of a leg's log is lost or told twice.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.credentials import KubeCredentials, ServerCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.nodes import pod_name, pods
from orchestrator.following import known_verdict
from orchestrator.outcome import describe_part, failed_parts
from tests.workflows.cluster import BUSYBOX, LEG, as_busybox, unique
from workflows.regression_pair import regression_pair
from workflows.render import to_dict

LINES = 20
DEADLINE_S = 600.0
# The parts take seconds; a busy machine with a server that restarts needs more.
_TIMEOUTS = {"leg_timeout_s": 240, "compare_timeout_s": 240, "alert_timeout_s": 240}
_COUNT = f'i=0; while [ $i -lt {LINES} ]; do echo "line $i"; i=$((i+1)); sleep 0.8; done\n'
_MAKES_A_NEW_POD = frozenset({"pod deleted", "pod evicted"})

Fault = Callable[[ArgoEngine, dict[str, Any]], None]


def main(wanted: list[str]) -> int:
    """Run the faults, print a line for each; returns the exit code."""
    faults = {name: fault for name, fault in FAULTS.items() if not wanted or name in wanted}
    print(f"{'fault':24} {'verdict':12} {'pods':>4} {'lines of a leg':>14} {'seconds':>8}", flush=True)
    bad = 0
    for name, fault in faults.items():
        verdict, pod_count, told, seconds = run(name, fault)
        # Of a pod that was taken away nobody has all lines; what the others printed is told once.
        lines_right = told == LINES or name in _MAKES_A_NEW_POD
        right = verdict == "identical" and lines_right
        bad += not right
        row = f"{name:24} {verdict:12} {pod_count:4} {told:>11}/{LINES} {seconds:8.0f}"
        print(row + ("" if right else "   <-- wrong"), flush=True)
    return 1 if bad else 0


def run(name: str, fault: Fault) -> tuple[str, int, int, float]:
    """(verdict, pods of leg a, lines of leg b that were told exactly once, seconds) of one pair with one fault."""
    began = time.monotonic()
    trainer = ("sh", "-c", _COUNT + LEG, "trainer")
    parameters = dataclasses.replace(unique(BUSYBOX), gate=False, trainer=trainer, **_TIMEOUTS)
    with tempfile.TemporaryDirectory() as folder:
        engine = engine_of(name, Path(folder))
        workflow = engine.submit(as_busybox(to_dict(regression_pair(parameters))))
        lines: list[str] = []

        def read() -> None:
            lines.extend(line.text for line in engine.logs(workflow, follow=True, node="leg-b"))

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        injected: threading.Thread | None = None
        done: dict[str, Any] = {}
        for done in engine.watch(workflow, deadline_s=DEADLINE_S):
            phases = [node["phase"] for node in pods(done).values()]
            if injected is None and phases.count("Running") == 2:
                injected = threading.Thread(target=lambda now=done: (time.sleep(3), fault(engine, now)))  # type: ignore[misc]
                injected.start()
        reading.join(60)
        if injected is not None:
            injected.join()
        ended = engine.get(workflow)
        verdict = known_verdict(engine, ended)
        if verdict != "identical":
            print("\n".join(describe_part(part) for part in failed_parts(ended)), file=sys.stderr)
        attempts = [node for node in pods(done).values() if str(node["displayName"]).startswith("leg-a")]
        ArgoEngine(KubernetesApi(KubeCredentials()), Path(folder)).delete(workflow, force=True)
    counted = Counter(lines)
    told = sum(counted[f"line {i}"] == 1 for i in range(LINES))
    return verdict, len(attempts), told, time.monotonic() - began


def engine_of(fault: str, folder: Path) -> ArgoEngine:
    """The engine that a fault is tried on: by argo-server where that breaks or its token does, else by the API."""
    if fault not in ("argo-server restarted", "token expired"):
        return ArgoEngine(KubernetesApi(KubeCredentials()), folder)
    (folder / "token").write_text(os.environ["ARGO_TOKEN"], "utf-8")
    credentials = ServerCredentials(
        server=os.environ["ARGO_SERVER"],
        token_file=str(folder / "token"),
        secure=os.environ.get("ARGO_SECURE", "true") != "false",
        namespace=os.environ.get("ARGO_NAMESPACE", "argo"),
    )
    return ArgoEngine(ArgoServerApi(credentials), folder)


def command(*words: str) -> Fault:
    """A fault that the cluster's own command makes; it mends it as well."""

    def inject(engine: ArgoEngine, workflow: dict[str, Any]) -> None:
        leg = next(pod_name(workflow, n) for n in pods(workflow).values() if str(n["displayName"]).startswith("leg-a"))
        subprocess.run([os.environ["FOXRUN_FAULT"], *(word.format(pod=leg) for word in words)], check=True)

    return inject


def delete_pod(engine: ArgoEngine, workflow: dict[str, Any]) -> None:
    """Within 10 s of its start Argo makes a deleted pod again without a word, so this waits."""
    time.sleep(9)
    leg = next(pod_name(workflow, n) for n in pods(workflow).values() if str(n["displayName"]).startswith("leg-a"))
    subprocess.run(
        ["kubectl", "delete", "pod", leg, "--grace-period=1", "--wait=false"], check=True, capture_output=True
    )


def expire_token(engine: ArgoEngine, workflow: dict[str, Any]) -> None:
    """The token in use is refused, and so is the one in the file, for five seconds."""
    api = engine.api
    assert isinstance(api, ArgoServerApi)
    credentials = api.transport.credentials
    assert isinstance(credentials, ServerCredentials)
    file = Path(credentials.token_file)
    file.write_text("Bearer expired", "utf-8")
    api.transport.reload()
    time.sleep(5)
    file.write_text(os.environ["ARGO_TOKEN"], "utf-8")


def nothing(engine: ArgoEngine, workflow: dict[str, Any]) -> None:
    """The control."""


FAULTS: dict[str, Fault] = {
    "none": nothing,
    "controller restarted": command("restart-controller"),
    "API server restarted": command("restart-apiserver"),
    "argo-server restarted": command("restart-server"),
    "token expired": expire_token,
    "pod deleted": delete_pod,
    "pod evicted": command("evict-pod", "{pod}"),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

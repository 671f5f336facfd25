"""The faults of `make faults`: what breaks, what mends it, and what the pair should come to all the same.

FOXRUN_FAULT is a command that takes kill-controller, restart-controller, restart-apiserver, restart-server, s3-down,
s3-up, cordon, uncordon and `evict-pod POD`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.nodes import pod_name, pods

LINES, FILES = 20, 40
# Once both legs run: the executor has reported once, so a fault does not meet the start.
_SETTLE_S = 3.0
# A name of this benchmark's own for its bucket's Secret, and for the token that it takes away.
OWN = "foxrun-faults"

Said = tuple[dict[str, Any], int]


@dataclasses.dataclass
class Pair:
    """A pair that runs, and the `foxrun watch` that follows it."""

    engine: ArgoEngine
    name: str
    environ: dict[str, str]
    home: Path
    watching: subprocess.Popen[str] | None = None

    def start_watching(self) -> None:
        """As a person does, in a process of its own."""
        words = [sys.executable, "-P", "-m", "orchestrator", "watch", self.name, "-o", "json", "--deadline", "9m"]
        self.watching = subprocess.Popen(
            words, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def stop_watching(self) -> None:
        """SIGKILL."""
        if self.watching is not None:
            self.watching.kill()
            self.watching.communicate()

    def watched(self, deadline_s: float) -> Said:
        """The verdict that the watching printed and the code with which it ended."""
        assert self.watching is not None
        try:
            out, said = self.watching.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            return {"verdict": "none", "message": "the watching has not ended"}, -1
        verdict = json.loads(out) if out.strip() else {"verdict": "none", "message": " ".join(said.split())[-600:]}
        return verdict, self.watching.returncode

    def until_both_run(self, deadline_s: float) -> None:
        """Wait for both legs' containers."""
        watcher = ArgoEngine(KubernetesApi(KubeCredentials()), self.home)
        for workflow in watcher.watch(self.name, deadline_s=deadline_s):
            if [node["phase"] for node in pods(workflow).values()].count("Running") == 2:
                time.sleep(_SETTLE_S)
                return

    def leg(self) -> str:
        """The pod of leg a."""
        workflow = ArgoEngine(KubernetesApi(KubeCredentials()), self.home).get(self.name)
        return next(pod_name(workflow, n) for n in pods(workflow).values() if str(n["displayName"]).startswith("leg-a"))


def _nothing(_: Any) -> None:
    pass


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that breaks.

    ``prepare`` changes the manifest, ``mend`` puts back what ``inject`` broke, ``afterwards`` may go on from a verdict,
    ``tidy`` removes what ``prepare`` or ``token`` made beside the pair.
    """

    inject: Callable[[Pair], None] = _nothing
    prepare: Callable[[dict[str, Any]], None] = _nothing
    mend: Callable[[Pair], None] = _nothing
    afterwards: Callable[[Pair, dict[str, Any], int], Said] = lambda pair, verdict, code: (verdict, code)
    tidy: Callable[[], None] = lambda: None
    token: Callable[[], str] = lambda: os.environ["ARGO_TOKEN"]
    verdict: str = "identical"
    says: str = ""
    one_leg: bool = False
    through_server: bool = False
    pause_s: float = 0.8
    retries: int = 3


def fault(*words: str) -> None:
    """Call the cluster's own command."""
    subprocess.run([os.environ["FOXRUN_FAULT"], *words], check=True, capture_output=True)


def kubectl(*words: str, stdin: str | None = None) -> str:
    """Call kubectl, which waits for an API server that restarts."""
    done = subprocess.run(["kubectl", *words], check=True, capture_output=True, text=True, input=stdin)
    return done.stdout.strip()


def kill_controller(_: Pair) -> None:
    """For ten seconds nobody looks at the pods."""
    fault("kill-controller")
    time.sleep(10)
    fault("restart-controller")


def delete_pod(pair: Pair) -> None:
    """Within 10 s of its start Argo makes a deleted pod again without a word, so this waits."""
    time.sleep(8)
    kubectl("delete", "pod", pair.leg(), "--grace-period=1", "--wait=false")


def cordon(_: Pair) -> None:
    """The legs end, and compare finds no node for 30 s."""
    fault("cordon")
    time.sleep(30)
    fault("uncordon")


def s3_down(_: Pair) -> None:
    """From before the legs end until a minute later: none of their files can be stored."""
    time.sleep(LINES * 0.8 - _SETTLE_S - 5)
    fault("s3-down")
    time.sleep(60)
    fault("s3-up")


def out_of_memory(manifest: dict[str, Any]) -> None:
    """Leg a takes more than its limit, half-way."""
    leg = next(template for template in manifest["spec"]["templates"] if template["name"] == "leg")
    eats = 'if [ "$$FOXRUN_LEG" = a ]; then sleep 8; tail /dev/zero; exit $$?; fi\n'
    container = leg["container"]
    for words in (container["command"], container["args"]):
        for position, word in enumerate(words):
            if "FOXRUN_LEG" in word:
                words[position] = eats + word


def own_credentials(manifest: dict[str, Any]) -> None:
    """The cluster's bucket under a Secret of this benchmark's own, which it may spoil."""
    controller = json.loads(kubectl("get", "configmap", "workflow-controller-configmap", "-o", "json"))
    repository = controller["data"]["artifactRepository"].replace("foxrun-s3", OWN)
    keys = {"accessKey": os.environ["AWS_ACCESS_KEY_ID"], "secretKey": os.environ["AWS_SECRET_ACCESS_KEY"]}
    things = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": OWN}, "stringData": keys},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": OWN}, "data": {"own": repository}},
    ]
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": things}))
    manifest["spec"]["artifactRepositoryRef"] = {"configMap": OWN, "key": "own"}


def remove_own() -> None:
    """What own_credentials and token_to_lose have made."""
    kubectl("delete", "secret,configmap", OWN, "--ignore-not-found")
    kubectl("delete", "secret", f"{OWN}-token", "--ignore-not-found")


def refuse_credentials(_: Pair) -> None:
    """The bucket's key is another one from now on."""
    kubectl("patch", "secret", OWN, "-p", json.dumps({"stringData": {"secretKey": "refused"}}))


def retried(pair: Pair, verdict: dict[str, Any], code: int) -> Said:
    """The key is put right; `foxrun retry` goes on from there. Only an `infrastructure` may become identical so."""
    if (verdict.get("verdict"), code) != ("infrastructure", 6):
        return verdict, code
    keys = {"stringData": {"secretKey": os.environ["AWS_SECRET_ACCESS_KEY"]}}
    kubectl("patch", "secret", OWN, "-p", json.dumps(keys))
    environ = {**os.environ, "FOXRUN_HOME": str(pair.home), "FOXRUN_ENGINE": "argo"}
    words = [sys.executable, "-P", "-m", "orchestrator", "retry", pair.name, "-o", "json"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    said = json.loads(done.stdout) if done.stdout.strip() else {"verdict": "none", "message": done.stderr}
    return said, done.returncode


def token_to_lose() -> str:
    """A token that holds as long as a Secret exists."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{OWN}-token"}}
    kubectl("apply", "-f", "-", stdin=json.dumps(secret))
    bound = ("--bound-object-kind", "Secret", "--bound-object-name", f"{OWN}-token")
    return kubectl("create", "token", "client", *bound)


def lose_token(pair: Pair) -> None:
    """The token is refused; ten seconds later the file has another one."""
    kubectl("delete", "secret", f"{OWN}-token")
    time.sleep(10)
    (pair.home / "token").write_text(os.environ["ARGO_TOKEN"], "utf-8")


def kill_watcher(pair: Pair) -> None:
    """SIGKILL, and the same command once more."""
    pair.stop_watching()
    time.sleep(3)
    pair.start_watching()


FAULTS: dict[str, Fault] = {
    "none": Fault(),
    "controller killed, restarted": Fault(inject=kill_controller),
    # Argo 4.0.5's controller does not recover its watch of ConfigMaps, and logs that without a pause.
    "API server restarted": Fault(
        inject=lambda _: fault("restart-apiserver"), mend=lambda _: fault("restart-controller")
    ),
    "argo-server restarted": Fault(inject=lambda _: fault("restart-server"), through_server=True),
    "pod deleted": Fault(inject=delete_pod),
    "pod evicted": Fault(inject=lambda pair: fault("evict-pod", pair.leg())),
    "node cordoned": Fault(inject=cordon, mend=lambda _: fault("uncordon")),
    "leg out of memory": Fault(prepare=out_of_memory, verdict="job_failed", says="OOMKilled", one_leg=True),
    "S3 down for 60 s": Fault(inject=s3_down, mend=lambda _: fault("s3-up")),
    "S3 credentials refused, retried": Fault(
        prepare=own_credentials, inject=refuse_credentials, afterwards=retried, tidy=remove_own, retries=1
    ),
    "token expired": Fault(inject=lose_token, token=token_to_lose, tidy=remove_own, through_server=True, pause_s=4.0),
    "watching foxrun killed": Fault(inject=kill_watcher),
}

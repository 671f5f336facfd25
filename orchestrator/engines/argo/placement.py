"""Pods that wait for what will not come: no node of that kind, no such image. Said at once, not waited for for ever.

Argo copies the pod's own reason into the message of its node. A cluster that makes nodes on demand needs minutes for
one, and a GPU that others use now is a reason to wait; so following ends only after a grace, and not while other parts
of the workflow run.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.engines.argo.api import Api
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.nodes import name_of, pod_name, pods
from orchestrator.errors import FoxrunError, Unschedulable

# What a pod waits for, and what helps. The kubelet tries images again and again, with pauses of up to 5 minutes.
_REMEDIES = {
    "Unschedulable": "kubectl get nodes -L nvidia.com/gpu.product shows what there is; "
    "choose a GPU model, a count, a CPU and memory that one node has, or add a toleration",
    "ErrImagePull": "check the image's name and the registry's secret; foxrun doctor looks for the image",
    "ImagePullBackOff": "check the image's name and the registry's secret; foxrun doctor looks for the image",
    "ErrImageNeverPull": "load the image onto the nodes",
    "InvalidImageName": "mend the image's name",
    "CreateContainerConfigError": "create the Secret or ConfigMap that the message names",
    "CreateContainerError": "kubectl describe pod says more",
    "FailedMount": "kubectl describe pod says which volume",
}
# The scheduler's words for a node that could take the pod once others have left it.
_BUSY = ("Insufficient", "Too many pods")
_UNITS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


class Waiting:
    """Remembers since when each pod has waited for which reason.

    Args:
        grace_s: seconds that a pod may wait for what does not come.
        api: where nodes are looked at, as far as it has them and we may see them.
    """

    def __init__(self, grace_s: float, api: Api) -> None:
        self.grace_s = grace_s
        self.api = api
        self._never: dict[str, str] = {}
        self._since: dict[str, tuple[str, float]] = {}

    def look(self, workflow: Mapping[str, Any]) -> None:
        """Take note of a workflow. Raises Unschedulable when all that is left has waited longer than the grace."""
        now = time.monotonic()
        waiting = {}
        runs = False
        for node_id, node in pods(workflow).items():
            phase = node.get("phase")
            runs = runs or phase == "Running"
            reason = reason_of(node)
            if reason and not (is_queueing(node) and self._may_fit(workflow, node_id, node)):
                waiting[node_id] = (reason, self._since.get(node_id, (reason, now))[1])
        self._since = waiting
        if runs or not waiting:
            return
        node_id, (reason, since) = min(waiting.items(), key=lambda item: item[1][1])
        if now - since < self.grace_s:
            return
        node = pods(workflow)[node_id]
        part = str(node.get("displayName")).split("(")[0]
        raise Unschedulable(
            f"{part} of workflow {name_of(workflow)} cannot start, for {now - since:.0f} s now: {node.get('message')}"
            + (f"; {lacking}" if (lacking := self._never.get(node_id)) else ""),
            remedy=f"{_REMEDIES[reason]}; then foxrun stop {name_of(workflow)} and submit again",
        )

    def _may_fit(self, workflow: Mapping[str, Any], node_id: str, node: Mapping[str, Any]) -> bool:
        """Whether some node, once empty, has what this pod asks for; looked up once a pod."""
        if node_id not in self._never:
            self._never[node_id] = ""
            if isinstance(self.api, KubernetesApi):
                # An account that may not see nodes waits until its deadline.
                with contextlib.suppress(FoxrunError):
                    self._never[node_id] = lack(self.api.pod(pod_name(workflow, node)), self.api.nodes())
        return not self._never[node_id]

    def next_look_s(self) -> float:
        """Seconds until a look may raise; a second at least."""
        if not self._since:
            return float("inf")
        first = min(since for _, since in self._since.values())
        return max(1.0, first + self.grace_s - time.monotonic() + 0.1)


def reason_of(node: Mapping[str, Any]) -> str:
    """Why a pod that is Pending may wait for ever, as a word of Kubernetes; "" where it is only slow."""
    if node.get("phase") != "Pending":
        return ""
    reason = str(node.get("message") or "").split(":")[0].strip()
    return reason if reason in _REMEDIES else ""


def is_queueing(node: Mapping[str, Any]) -> bool:
    """Whether some node is only full: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match ...`."""
    message = str(node.get("message") or "")
    reasons = message.partition("available:")[2].partition("preemption:")[0]
    return any(any(word in part for word in _BUSY) for part in reasons.split(","))


def fits(pod: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any of the nodes, were it empty, has all that the pod asks for."""
    return not lack(pod, nodes)


def lack(pod: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """What no node has, were it empty, of all that the pod's containers request together; "" when one could take it."""
    wanted: dict[str, float] = {}
    written: dict[str, list[str]] = {}
    for container in (pod.get("spec") or {}).get("containers") or []:
        for resource, text in ((container.get("resources") or {}).get("requests") or {}).items():
            wanted[resource] = wanted.get(resource, 0.0) + quantity(text)
            written.setdefault(resource, []).append(str(text))
    there = [(node.get("status") or {}).get("allocatable") or {} for node in nodes]
    if any(all(quantity(has.get(name, "0")) >= amount for name, amount in wanted.items()) for has in there):
        return ""
    asked = {name: " + ".join(texts) for name, texts in sorted(written.items())}
    most = {name: max((str(has.get(name, "0")) for has in there), key=quantity, default="0") for name in asked}
    short = [name for name in asked if wanted[name] > quantity(most[name])]
    if not short:
        return f"no single node has {', '.join(f'{name} {text}' for name, text in asked.items())}"
    return ", ".join(f"it asks for {name} {asked[name]} and the largest node has {most[name]}" for name in short)


def quantity(text: Any) -> float:
    """A quantity of Kubernetes, such as 500m or 16Gi, as a number."""
    match = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)([a-zA-Z]*)", str(text))
    return float(match.group(1)) * _UNITS.get(match.group(2), 1.0) if match else 0.0

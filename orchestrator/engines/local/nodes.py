"""The nodes of a Workflow's status: the tree that Argo's UI draws, and all that the engine remembers of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from orchestrator.engines.base import Workflow
from orchestrator.engines.local.values import now

Node = dict[str, Any]

COMPLETED = frozenset({"Succeeded", "Failed", "Error"})
FULFILLED = COMPLETED | {"Skipped", "Omitted"}
UNSUCCESSFUL = frozenset({"Failed", "Error"})
_SEPARATOR = re.compile(r"^(\[\d+\])?\.")
_PROGRESS = re.compile(r"(\d{1,18})/(\d{1,18})")
_MAX_POD_NAME_PREFIX = 253 - 10 - 1


def fnv32a(text: str) -> int:
    """Return the 32-bit FNV-1a hash, by which Argo makes ids out of names."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def parse_progress(text: str) -> tuple[int, int] | None:
    """Return (done, total) of `N/M`, or None when it is no progress."""
    match = _PROGRESS.fullmatch(text.strip())
    if match is None or int(match[2]) == 0 or int(match[1]) > int(match[2]):
        return None
    return int(match[1]), int(match[2])


class Nodes:
    """The nodes of one Workflow, kept in `status.nodes` in the order of their beginning."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow_name: str = workflow["metadata"]["name"]
        self.status: dict[str, Any] = workflow["status"]
        self.by_id: dict[str, Node] = self.status.setdefault("nodes", {})
        self.version = 0

    def id_of(self, name: str) -> str:
        """Return the id of the node of that name."""
        return name if name == self.workflow_name else f"{self.workflow_name}-{fnv32a(name)}"

    def pod_name(self, name: str, template: str) -> str:
        """Return the name that the node's pod has on a cluster."""
        if name == self.workflow_name:
            return name
        return f"{f'{self.workflow_name}-{template}'[:_MAX_POD_NAME_PREFIX]}-{fnv32a(name)}"

    def get(self, name: str) -> Node | None:
        """Return the node of that name, or None."""
        return self.by_id.get(self.id_of(name))

    def create(self, name: str, kind: str, template: str, boundary: Node | None, phase: str, message: str = "") -> Node:
        """Add a node; one that is fulfilled at once has no duration."""
        display = name
        if boundary is not None:
            display = _SEPARATOR.sub("", name.removeprefix(boundary["name"]))
        node: Node = {"id": self.id_of(name), "name": name, "displayName": display, "type": kind}
        if template:
            node["templateName"] = template
        node.update(phase=phase, startedAt=now())
        if boundary is not None:
            node["boundaryID"] = boundary["id"]
        if kind == "Pod":
            node["progress"] = "0/1"
        self.by_id[node["id"]] = node
        self.mark(node, phase, message)
        return node

    def mark(self, node: Node, phase: str, message: str | None = None) -> None:
        """Set a node's phase and, unless it is None, its message."""
        node["phase"] = phase
        if message is not None:
            node["message"] = message
            if not message:
                del node["message"]
        if phase in FULFILLED:
            node.setdefault("finishedAt", now())
        self.version += 1

    def add_child(self, parent: Node, child: Node) -> None:
        """Draw an edge, once."""
        children = parent.setdefault("children", [])
        if child["id"] not in children:
            children.append(child["id"])
            self.version += 1

    def children(self, node: Node) -> list[Node]:
        """Return the nodes that follow this one."""
        return [self.by_id[child] for child in node.get("children", []) if child in self.by_id]

    def inside(self, boundary: Node) -> Iterator[Node]:
        """Yield the nodes of a DAG's or of steps' own level."""
        return (node for node in self.by_id.values() if node.get("boundaryID") == boundary["id"])

    def outbound(self, node: Node) -> list[Node]:
        """Return the nodes by which the flow leaves a node: itself, or the last ones inside it."""
        if node["type"] in ("Pod", "Skipped"):
            return [node]
        if node["type"] == "Retry":
            attempts = self.children(node)
            return self.outbound(attempts[-1]) if attempts else [node]
        last = [self.by_id[item] for item in node.get("outboundNodes", []) if item in self.by_id]
        return last or [node]

    def failures(self) -> str:
        """Return `{{workflow.failures}}` as Argo gives it: a JSON list inside a JSON string."""
        failed = [
            {
                "displayName": node["displayName"],
                "message": node.get("message", ""),
                "templateName": node.get("templateName", ""),
                "phase": node["phase"],
                "podName": self.pod_name(node["name"], node.get("templateName", "")),
                "finishedAt": node.get("finishedAt"),
            }
            for node in self.by_id.values()
            if node["phase"] in UNSUCCESSFUL
        ]
        return json.dumps(json.dumps(failed or None, ensure_ascii=False, separators=(",", ":")), ensure_ascii=False)

    def sum_progress(self) -> None:
        """Set the progress of the workflow and of every node that is no pod from that of the pods."""
        done = total = 0
        for node in self.by_id.values():
            if node["type"] != "Pod":
                continue
            progress = parse_progress(node.get("progress", ""))
            if progress is None:
                continue
            if node["phase"] == "Succeeded":
                progress = progress[1], progress[1]
                node["progress"] = f"{progress[1]}/{progress[1]}"
            done, total = done + progress[0], total + progress[1]
        self.status["progress"] = f"{done}/{total}"
        for node in self.by_id.values():
            if node["type"] != "Pod":
                below = [parse_progress(pod["progress"]) for pod in self._pods_below(node)]
                n, m = sum(p[0] for p in below if p), sum(p[1] for p in below if p)
                if m:
                    node["progress"] = f"{n}/{m}"

    def _pods_below(self, node: Node) -> Iterator[Node]:
        if node["type"] in ("DAG", "Steps"):
            below = list(self.inside(node))
        elif node["type"] in ("Retry", "StepGroup"):
            below = self.children(node)
        else:
            below = []
        for child in below:
            if child["type"] == "Pod":
                yield child
            elif child["type"] in ("DAG", "Steps") or (child["type"] == "Retry" and node["type"] == "StepGroup"):
                yield from self._pods_below(child)

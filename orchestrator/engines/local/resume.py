"""What of a run is kept when it goes on after a failure or a kill: what succeeded, and what rests on nothing else.

A node is kept when it succeeded (or was rightly left out) and all that it depends on is kept; the rest begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.engines.base import Workflow
from orchestrator.engines.local.depends import Dag
from orchestrator.engines.local.nodes import Node
from orchestrator.engines.local.values import now
from orchestrator.stores.directory import DirectoryStore

_GOOD = frozenset({"Succeeded", "Skipped", "Omitted"})


def reset(workflow: Workflow, store: DirectoryStore) -> None:
    """Make a Workflow ready to go on: drop what begins anew, with the artifacts that it had stored."""
    nodes: dict[str, Node] = workflow.setdefault("status", {}).setdefault("nodes", {})
    kept = _Keeper(workflow, nodes).keep()
    for node_id in [node_id for node_id in nodes if node_id not in kept]:
        for artifact in nodes.pop(node_id).get("outputs", {}).get("artifacts", []):
            if not any(artifact["s3"] == other["s3"] for other in _artifacts(nodes)):
                store.delete(artifact["s3"]["key"])
    for node in nodes.values():
        if "children" in node:
            node["children"] = [child for child in node["children"] if child in nodes]
    status = workflow["status"]
    for gone in ("finishedAt", "message", "conditions", "outputs"):
        status.pop(gone, None)
    status.update(phase="Running", startedAt=now())
    workflow["spec"].pop("shutdown", None)
    for label in ("phase", "completed"):
        workflow["metadata"].get("labels", {}).pop(f"workflows.argoproj.io/{label}", None)


def _artifacts(nodes: Mapping[str, Node]) -> list[dict[str, Any]]:
    return [artifact for node in nodes.values() for artifact in node.get("outputs", {}).get("artifacts", [])]


class _Keeper:
    def __init__(self, workflow: Workflow, nodes: Mapping[str, Node]) -> None:
        self.name: str = workflow["metadata"]["name"]
        self.templates = {t["name"]: t for t in workflow["spec"]["templates"]}
        self.nodes = nodes
        self.by_name = {node["name"]: node for node in nodes.values()}
        self.kept: set[str] = set()

    def keep(self) -> set[str]:
        """Return the ids of the nodes to keep."""
        root = self.by_name.get(self.name)
        if root is not None:
            self._good(root)
        return self.kept

    def _good(self, node: Node) -> bool:
        """Keep what can be kept of a node; return whether it stays as it is."""
        if node["phase"] in _GOOD:
            self._keep_whole(node)
            return True
        if node["type"] == "DAG":
            self._reopen(node)
            self._dag(node)
        elif node["type"] == "Steps":
            self._reopen(node)
            self._steps(node)
        return False

    def _keep_whole(self, node: Node) -> None:
        self.kept.add(node["id"])
        inner = [n for n in self.nodes.values() if n.get("boundaryID") == node["id"]]
        if node["type"] == "Retry":
            inner = [self.nodes[child] for child in node.get("children", []) if child in self.nodes]
        for child in inner:
            if child["id"] not in self.kept:
                self._keep_whole(child)

    def _reopen(self, node: Node) -> None:
        self.kept.add(node["id"])
        node["phase"] = "Running"
        for gone in ("finishedAt", "message", "outputs", "outboundNodes"):
            node.pop(gone, None)

    def _dag(self, boundary: Node) -> None:
        dag = Dag(self.templates[boundary["templateName"]])
        good: dict[str, bool] = {}

        def visit(task: str) -> bool:
            if task not in good:
                before = [visit(dependency) for dependency in dag.dependencies(task)]
                node = self.by_name.get(f"{boundary['name']}.{task}")
                good[task] = all(before) and node is not None and self._good(node)
            return good[task]

        for task in dag.tasks:
            visit(task)

    def _steps(self, boundary: Node) -> None:
        for index, steps in enumerate(self.templates[boundary["templateName"]]["steps"]):
            group = self.by_name.get(f"{boundary['name']}[{index}]")
            if group is None:
                return
            inner = [self.by_name.get(f"{group['name']}.{step['name']}") for step in steps]
            if group["phase"] == "Succeeded":
                self.kept.add(group["id"])
                for node in inner:
                    if node is not None:
                        self._keep_whole(node)
                continue
            self._reopen(group)
            for node in inner:
                if node is not None:
                    self._good(node)
            return

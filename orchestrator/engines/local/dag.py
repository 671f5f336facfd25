"""DAG nodes: which task begins when, and what the whole has come to."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.engines.local.calls import Arguments, Call
from orchestrator.engines.local.depends import Dag
from orchestrator.engines.local.expression import WHEN, parse
from orchestrator.engines.local.nodes import COMPLETED, FULFILLED, UNSUCCESSFUL, Node
from orchestrator.engines.local.scope import (
    Artifact,
    Tags,
    artifacts_of,
    given_arguments,
    inner_outputs,
    input_tags,
    node_tags,
)
from orchestrator.engines.local.substitution import Scope, substitute

if TYPE_CHECKING:
    from orchestrator.engines.local.reconcile import Reconciler


class DagRunner:
    """Carries DAG nodes forward."""

    def __init__(self, reconciler: Reconciler) -> None:
        self.reconciler = reconciler
        self.nodes = reconciler.nodes
        self._parsed: dict[str, Dag] = {}

    def advance(self, node: Node, template: Mapping[str, Any], call: Call) -> None:
        """Begin the tasks that may begin, and complete the DAG when they all have ended."""
        dag = self._parsed.get(template["name"])
        if dag is None:
            dag = self._parsed[template["name"]] = Dag(template)
        why = self.reconciler.stop_reason(call.on_exit)
        seen: set[str] = set()
        for task in dag.targets:
            self._task(node, dag, task, call, seen)
        if why:
            if all(inner["phase"] in FULFILLED for inner in self.nodes.inside(node)):
                self._finish(node, dag, "Failed", why)
            return
        phase = self._assess(node, dag)
        if phase == "Running":
            return
        if phase != "Succeeded":
            self._finish(node, dag, phase, None)
            return
        try:
            tags, artifacts = self._scope(node, dag, list(dag.tasks))
            outputs = inner_outputs(template, Scope(tags, input_tags(node), self.reconciler.tags), artifacts)
        except ValueError as error:
            self._finish(node, dag, "Error", str(error))
            return
        if outputs:
            node["outputs"] = outputs
        self._finish(node, dag, "Succeeded", "")

    def _finish(self, node: Node, dag: Dag, phase: str, message: str | None) -> None:
        ends = [self.nodes.get(f"{node['name']}.{task}") for task in dag.targets]
        node["outboundNodes"] = [out["id"] for end in ends if end is not None for out in self.nodes.outbound(end)]
        self.nodes.mark(node, phase, message)

    def _task(self, boundary: Node, dag: Dag, task: str, call: Call, seen: set[str]) -> None:
        if task in seen:
            return
        seen.add(task)
        name = f"{boundary['name']}.{task}"
        node = self.nodes.get(name)
        if node is not None and node["phase"] in FULFILLED:
            return
        if node is None:
            if not self._may_begin(boundary, dag, task, call, seen):
                return
            if dag.tasks[task].get("when") and not self._when(boundary, dag, task):
                return
        spec = dag.tasks[task]

        def arguments() -> Arguments:
            scope, artifacts = self._task_scope(boundary, dag, task)
            return given_arguments(spec.get("arguments") or {}, scope, artifacts)

        begun = self.reconciler.execute(call.inner(name, spec["template"], arguments, boundary))
        if begun is not None and node is None:
            self._connect(boundary, dag, task, begun)

    def _may_begin(self, boundary: Node, dag: Dag, task: str, call: Call, seen: set[str]) -> bool:
        """Return whether the task's dependencies allow it to begin; one that never will is marked Omitted."""
        ended: dict[str, Node] = {}
        for dependency in dag.dependencies(task):
            self._task(boundary, dag, dependency, call, seen)
            node = self.nodes.get(f"{boundary['name']}.{dependency}")
            if node is not None and node["phase"] in FULFILLED:
                ended[dependency] = node
        if len(ended) < len(dag.dependencies(task)) or self.reconciler.stop_reason(call.on_exit):
            return False
        try:
            if dag.may_run(task, ended):
                return True
        except ValueError as error:
            self._skip(boundary, dag, task, "Error", str(error))
            return False
        self._skip(boundary, dag, task, "Omitted", "omitted: depends condition not met")
        return False

    def _when(self, boundary: Node, dag: Dag, task: str) -> bool:
        text = dag.tasks[task]["when"]
        scope, _ = self._task_scope(boundary, dag, task)
        try:
            if parse(text, WHEN).evaluate({}, scope):
                return True
            self._skip(boundary, dag, task, "Skipped", f"when '{substitute(text, scope)}' evaluated false")
        except ValueError as error:
            self._skip(boundary, dag, task, "Error", f"when: {error}")
        return False

    def _skip(self, boundary: Node, dag: Dag, task: str, phase: str, message: str) -> None:
        name = f"{boundary['name']}.{task}"
        node = self.nodes.create(name, "Skipped", dag.tasks[task]["template"], boundary, phase, message)
        self._connect(boundary, dag, task, node)

    def _connect(self, boundary: Node, dag: Dag, task: str, node: Node) -> None:
        dependencies = dag.dependencies(task)
        if not dependencies:
            self.nodes.add_child(boundary, node)
        for dependency in dependencies:
            before = self.nodes.get(f"{boundary['name']}.{dependency}")
            for out in self.nodes.outbound(before) if before is not None else []:
                self.nodes.add_child(out, node)

    def _task_scope(self, boundary: Node, dag: Dag, task: str) -> tuple[Scope, dict[str, Artifact]]:
        tags, artifacts = self._scope(boundary, dag, dag.ancestors(task))
        return Scope(tags, input_tags(boundary), self.reconciler.tags), artifacts

    def _scope(self, boundary: Node, dag: Dag, tasks: list[str]) -> tuple[Tags, dict[str, Artifact]]:
        tags: Tags = {}
        artifacts = artifacts_of("inputs.artifacts", boundary.get("inputs", {}).get("artifacts", []))
        for task in tasks:
            node = self.nodes.get(f"{boundary['name']}.{task}")
            if node is None:
                continue
            template = self.reconciler.templates.get(dag.tasks[task]["template"])
            tags.update(node_tags(f"tasks.{task}", node, template))
            artifacts.update(
                artifacts_of(f"tasks.{task}.outputs.artifacts", node.get("outputs", {}).get("artifacts", []))
            )
        return tags, artifacts

    def _assess(self, node: Node, dag: Dag) -> str:
        """Return the phase of a DAG: a target that was omitted counts as whatever the branch before it came to."""
        targets: dict[str, str] = {self.nodes.id_of(f"{node['name']}.{task}"): "" for task in dag.targets}
        todo = deque((child, "Succeeded") for child in node.get("children", []))
        seen = set(todo)
        while todo:
            node_id, branch = todo.popleft()
            current = self.nodes.by_id[node_id]
            if current["phase"] not in FULFILLED:
                return "Running"
            if current["phase"] in COMPLETED:
                branch = current["phase"]
            if node_id in targets and targets[node_id] not in UNSUCCESSFUL:
                targets[node_id] = branch
            following = current.get("children", [])
            if current["type"] == "Retry":
                # The attempts are reflected by the Retry node; the flow goes on behind the last one.
                following = [c for attempt in self.nodes.children(current) for c in attempt.get("children", [])]
            for child in following:
                if (child, branch) not in seen:
                    seen.add((child, branch))
                    todo.append((child, branch))
        result = "Succeeded"
        for task in dag.targets:
            branch = targets[self.nodes.id_of(f"{node['name']}.{task}")]
            if not branch:
                result = "Running"
                if not dag.fail_fast:
                    break
            elif branch in UNSUCCESSFUL and not dag.continues_on(task, branch):
                result = branch
                if dag.fail_fast:
                    break
        return result

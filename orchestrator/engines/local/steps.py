"""Steps nodes: groups one after the other, the steps of a group side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.engines.local.calls import Arguments, Call
from orchestrator.engines.local.depends import continues_on
from orchestrator.engines.local.expression import WHEN, parse
from orchestrator.engines.local.nodes import FULFILLED, UNSUCCESSFUL, Node
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

Step = Mapping[str, Any]


class StepsRunner:
    """Carries steps nodes forward."""

    def __init__(self, reconciler: Reconciler) -> None:
        self.reconciler = reconciler
        self.nodes = reconciler.nodes

    def advance(self, node: Node, template: Mapping[str, Any], call: Call) -> None:
        """Carry the groups forward, and complete the node after the last one or the first that failed."""
        why = self.reconciler.stop_reason(call.on_exit)
        tags: Tags = {}
        artifacts = artifacts_of("inputs.artifacts", node.get("inputs", {}).get("artifacts", []))
        before: Node | None = None
        for index, steps in enumerate(template["steps"]):
            scope = Scope(tags, input_tags(node), self.reconciler.tags)
            name = f"{node['name']}[{index}]"
            group = self.nodes.get(name)
            if group is None:
                if why:
                    self._finish(node, before, "Failed", why)
                    return
                group = self.nodes.create(name, "StepGroup", "", node, "Running")
                self._connect(node, before, group)
            if group["phase"] not in FULFILLED:
                self._group(group, node, steps, scope, artifacts, call, why)
            if group["phase"] not in FULFILLED:
                return
            if group["phase"] in UNSUCCESSFUL:
                self._finish(node, group, "Failed", group.get("message"))
                return
            before = group
            tags, artifacts = dict(tags), dict(artifacts)
            for step in steps:
                self._add_outputs(name, step, tags, artifacts)
        try:
            outputs = inner_outputs(template, Scope(tags, input_tags(node), self.reconciler.tags), artifacts)
        except ValueError as error:
            self._finish(node, before, "Error", str(error))
            return
        if outputs:
            node["outputs"] = outputs
        self._finish(node, before, "Succeeded", "")

    def _add_outputs(self, group: str, step: Step, tags: Tags, artifacts: dict[str, Artifact]) -> None:
        node = self.nodes.get(f"{group}.{step['name']}")
        if node is not None:
            template = self.reconciler.templates.get(step["template"])
            prefix = f"steps.{step['name']}"
            tags.update(node_tags(prefix, node, template))
            artifacts.update(artifacts_of(f"{prefix}.outputs.artifacts", node.get("outputs", {}).get("artifacts", [])))

    def _finish(self, node: Node, last: Node | None, phase: str, message: str | None) -> None:
        ends = self.nodes.children(last) if last is not None else []
        node["outboundNodes"] = [out["id"] for end in ends for out in self.nodes.outbound(end)]
        self.nodes.mark(node, phase, message)

    def _connect(self, node: Node, before: Node | None, group: Node) -> None:
        if before is None:
            self.nodes.add_child(node, group)
            return
        for child in self.nodes.children(before) or [before]:
            for out in self.nodes.outbound(child) if child is not before else [before]:
                self.nodes.add_child(out, group)

    def _group(
        self,
        group: Node,
        node: Node,
        steps: list[Step],
        scope: Scope,
        artifacts: dict[str, Artifact],
        call: Call,
        why: str,
    ) -> None:
        begun: dict[str, Step] = {}
        for step in steps:
            child = self._step(group, node, step, scope, artifacts, call)
            if child is not None:
                self.nodes.add_child(group, child)
                begun[child["id"]] = step
        children = [self.nodes.by_id[node_id] for node_id in begun]
        if any(child["phase"] not in FULFILLED for child in children) or (len(begun) < len(steps) and not why):
            return
        if why:
            self.nodes.mark(group, "Failed", why)
            return
        for child in children:
            if child["phase"] in UNSUCCESSFUL and not continues_on(begun[child["id"]], child["phase"]):
                self.nodes.mark(group, "Failed", f"child '{child['id']}' failed")
                return
        self.nodes.mark(group, "Succeeded", "")

    def _step(
        self, group: Node, node: Node, step: Step, scope: Scope, artifacts: dict[str, Artifact], call: Call
    ) -> Node | None:
        name = f"{group['name']}.{step['name']}"
        if self.nodes.get(name) is None and step.get("when"):
            try:
                if not parse(step["when"], WHEN).evaluate({}, scope):
                    message = f"when '{substitute(step['when'], scope)}' evaluated false"
                    return self.nodes.create(name, "Skipped", step["template"], node, "Skipped", message)
            except ValueError as error:
                return self.nodes.create(name, "Skipped", step["template"], node, "Error", f"when: {error}")

        def arguments() -> Arguments:
            return given_arguments(step.get("arguments") or {}, scope, artifacts)

        return self.reconciler.execute(call.inner(name, step["template"], arguments, node))

"""One pass over a Workflow: start what may start, and draw the conclusions from what has ended.

Like Argo's controller, each pass goes down from the entrypoint and knows nothing but the nodes, so a pass after a crash
is a pass like any other.
"""

from __future__ import annotations

import time
from typing import Any

from orchestrator.engines.base import Workflow
from orchestrator.engines.local.calls import Arguments, Call
from orchestrator.engines.local.dag import DagRunner
from orchestrator.engines.local.nodes import FULFILLED, UNSUCCESSFUL, Node, Nodes
from orchestrator.engines.local.pods import Pods
from orchestrator.engines.local.retries import decide, last_retry
from orchestrator.engines.local.scope import (
    Tags,
    bind_inputs,
    given_arguments,
    input_tags,
    workflow_tags,
)
from orchestrator.engines.local.steps import StepsRunner
from orchestrator.engines.local.substitution import Scope, substitute
from orchestrator.engines.local.values import duration_s, now, text_of, timestamp

STOPPED = "Stopped with strategy 'Stop'"
PAST_WORKFLOW_DEADLINE = "Step exceeded its deadline"
MAX_DEPTH = 100


class Reconciler:
    """Carries a Workflow forward; `wake_at` (seconds since the epoch) is when it wants the next pass at the latest."""

    def __init__(self, workflow: Workflow, nodes: Nodes, pods: Pods) -> None:
        self.workflow = workflow
        self.spec: dict[str, Any] = workflow["spec"]
        self.status: dict[str, Any] = workflow["status"]
        self.nodes = nodes
        self.pods = pods
        # Metrics have no meaning here, and tags that only Argo's controller gives a value.
        plain = [{key: value for key, value in t.items() if key != "metrics"} for t in self.spec["templates"]]
        self.templates: dict[str, dict[str, Any]] = {t["name"]: t for t in plain}
        self.tags: Tags = workflow_tags(workflow)
        self.wake_at = float("inf")
        self._dags = DagRunner(self)
        self._steps = StepsRunner(self)

    def stop_reason(self, on_exit: bool) -> str:
        """Return why nothing new may start, or an empty string; the exit handler always runs."""
        if on_exit:
            return ""
        if self.spec.get("shutdown"):
            return STOPPED
        deadline = self._deadline()
        return PAST_WORKFLOW_DEADLINE if deadline is not None and time.time() >= deadline else ""

    def _deadline(self) -> float | None:
        limit = self.spec.get("activeDeadlineSeconds")
        return None if limit is None else timestamp(self.status["startedAt"]) + duration_s(limit)

    def step(self) -> bool:
        """Make one pass; return whether the workflow is completed."""
        self.wake_at = self._deadline() or float("inf")
        if self.wake_at <= time.time():
            self.wake_at = float("inf")
        why = self.stop_reason(on_exit=False)
        if why:
            self.pods.stop_all(why, on_exit=False)
        name = self.workflow["metadata"]["name"]
        scope = Scope(self.tags)
        call = Call(name, self.spec["entrypoint"], lambda: self._own_arguments(scope), None, on_exit=False)
        root = self.execute(call)
        if root is None:
            if not why:
                return False
            root = self.nodes.create(name, "Skipped", self.spec["entrypoint"], None, "Failed", why)
        if root["phase"] not in FULFILLED:
            return False
        handler = self._exit_handler(root, scope) if self.spec.get("onExit") else None
        if handler is not None and handler["phase"] not in FULFILLED:
            return False
        self._complete(root, handler, why)
        return True

    def _own_arguments(self, scope: Scope) -> Arguments:
        arguments = self.spec.get("arguments", {})
        _, artifacts = given_arguments({"artifacts": arguments.get("artifacts")}, scope, {})
        # The workflow's own parameters are data from outside: braces in them are braces.
        return {p["name"]: text_of(p["value"]) for p in arguments.get("parameters", [])}, artifacts

    def _exit_handler(self, root: Node, scope: Scope) -> Node:
        phase = root["phase"] if root["phase"] in UNSUCCESSFUL else "Succeeded"
        # The failures are those of the run itself, not those of its exit handler.
        if "workflow.status" not in self.tags:
            seconds = timestamp(now()) - timestamp(self.status["startedAt"])
            self.tags.update(
                {
                    "workflow.status": phase,
                    "workflow.failures": self.nodes.failures(),
                    "workflow.duration": f"{seconds:.6f}",
                }
            )
        name = f"{self.workflow['metadata']['name']}.onExit"
        call = Call(name, self.spec["onExit"], lambda: self._own_arguments(scope), None, on_exit=True)
        node = self.execute(call)
        if node is None:  # only the workflow's parallelism can hold it back, and nothing else runs any more
            raise RuntimeError("the exit handler could not start")
        return node

    def _complete(self, root: Node, handler: Node | None, why: str) -> None:
        phase, message = root["phase"], root.get("message", "")
        if phase in UNSUCCESSFUL:
            message = why or message
        elif handler is not None and handler["phase"] in UNSUCCESSFUL:
            phase, message = handler["phase"], handler.get("message", "")
        else:
            phase = "Succeeded"
        self.status.update(phase=phase, finishedAt=now())
        self.status.pop("message", None)
        if message:
            self.status["message"] = message
        if "outputs" in root:
            self.status["outputs"] = {k: v for k, v in root["outputs"].items() if k != "exitCode"}
        self.status["conditions"] = [
            {"type": "PodRunning", "status": "False"},
            {"type": "Completed", "status": "True"},
        ]
        labels = self.workflow["metadata"].setdefault("labels", {})
        labels["workflows.argoproj.io/phase"] = phase
        labels["workflows.argoproj.io/completed"] = "true"
        self.nodes.version += 1

    def execute(self, call: Call) -> Node | None:
        """Carry one node forward, and begin it where it does not exist; None when it may not begin now."""
        node = self.nodes.get(call.name)
        if node is not None and node["phase"] in FULFILLED:
            return node
        if node is not None and node["type"] == "Retry":
            return self._retry(call, node)
        if node is None:
            if self.stop_reason(call.on_exit) or self._is_crowded(call):
                return None
            return self._begin(call)
        template = self.templates[call.template]
        if node["type"] == "DAG":
            self._dags.advance(node, template, call)
        elif node["type"] == "Steps":
            self._steps.advance(node, template, call)
        return node

    def _begin(self, call: Call) -> Node:
        template = self.templates[call.template]
        is_attempt = call.inputs is not None
        kind = "Pod" if "container" in template else "DAG" if "dag" in template else "Steps"
        if "retryStrategy" in template and not is_attempt:
            kind = "Retry"
        try:
            if call.depth > MAX_DEPTH:
                raise ValueError(f"templates call each other more than {MAX_DEPTH} deep")
            values, artifacts = call.arguments() if call.inputs is None else ({}, {})
            inputs = bind_inputs(template, values, artifacts, Scope(self.tags)) if call.inputs is None else call.inputs
        except ValueError as error:
            return self.nodes.create(call.name, "Skipped", call.template, call.boundary, "Error", str(error))
        node = self.nodes.create(call.name, kind, call.template, call.boundary, "Running")
        if inputs:
            node["inputs"] = inputs
        if kind == "Pod":
            self._start_pod(call, node, template)
        elif kind == "Retry":
            return self._retry(call, node)
        elif kind == "DAG":
            self._dags.advance(node, template, call)
        else:
            self._steps.advance(node, template, call)
        return node

    def _start_pod(self, call: Call, node: Node, template: dict[str, Any]) -> None:
        retry = self._retry_node(call.name)
        attempts = [n for n in self.nodes.children(retry) if n is not node] if retry else []
        tags: Tags = {"retries": str(len(attempts)), **last_retry(attempts)} if retry else {}
        scope = Scope(tags, input_tags(node), self.tags)
        until = float("inf")
        if template.get("timeout"):
            # As in Argo, the time of all attempts together.
            try:
                until = timestamp((retry or node)["startedAt"]) + duration_s(substitute(template["timeout"], scope))
            except ValueError as error:
                self.nodes.mark(node, "Error", f"timeout: {error}")
                return
        self.pods.start(node, template, scope, on_exit=call.on_exit, until=until)

    def _retry_node(self, name: str) -> Node | None:
        if not name.endswith(")"):
            return None
        node = self.nodes.get(name[: name.rindex("(")])
        return node if node is not None and node["type"] == "Retry" else None

    def _is_crowded(self, call: Call) -> bool:
        """Return whether a `parallelism`, the workflow's or the surrounding template's, forbids another pod now."""
        if "container" not in self.templates[call.template]:
            return False
        running = [n for n in self.nodes.by_id.values() if n["type"] == "Pod" and n["phase"] == "Running"]
        if len(running) >= int(self.spec.get("parallelism") or len(running) + 1):
            return True
        if call.boundary is None:
            return False
        beside = [node for node in running if node.get("boundaryID") == call.boundary["id"]]
        limit = self.templates[call.boundary["templateName"]].get("parallelism")
        return len(beside) >= int(limit or len(beside) + 1)

    def _retry(self, call: Call, node: Node) -> Node:
        """Carry a Retry node forward: its attempts are its children."""
        attempts = self.nodes.children(node)
        if attempts and attempts[-1]["phase"] not in FULFILLED:
            last = self.execute(call.attempt(attempts[-1]["name"], node.get("inputs", {})))
            if last is None or last["phase"] not in FULFILLED:
                return node
        if attempts:
            last = attempts[-1]
            if "outputs" in last:
                node["outputs"] = last["outputs"]
            if last["phase"] not in UNSUCCESSFUL:
                self.nodes.mark(node, "Succeeded", "")
                return node
            why = self.stop_reason(call.on_exit)
            if why:
                self.nodes.mark(node, last["phase"], why)
                return node
            if not self._another(call, node, attempts):
                return node
        name = f"{call.name}({len(attempts)})"
        attempt = self.execute(call.attempt(name, node.get("inputs", {})))
        if attempt is not None:
            self.nodes.add_child(node, attempt)
        return node

    def _another(self, call: Call, node: Node, attempts: list[Node]) -> bool:
        """Return whether another attempt begins now; else the node is done, or waits."""
        template = self.templates[call.template]
        last = attempts[-1]
        try:
            strategy = substitute(template["retryStrategy"], Scope(input_tags(node), self.tags))
            if template.get("timeout"):
                limit = duration_s(substitute(template["timeout"], Scope(input_tags(node), self.tags)))
                if time.time() >= timestamp(node["startedAt"]) + limit:
                    self.nodes.mark(node, last["phase"], last.get("message", ""))
                    return False
            decision = decide(strategy, attempts, time.time())
        except ValueError as error:
            self.nodes.mark(node, "Error", str(error))
            return False
        if decision.again:
            node.pop("message", None)
            return True
        if decision.wait_until is not None:
            self.wake_at = min(self.wake_at, decision.wait_until)
            if node.get("message") != decision.message:
                self.nodes.mark(node, "Running", decision.message)
        else:
            self.nodes.mark(node, last["phase"], decision.message)
        return False

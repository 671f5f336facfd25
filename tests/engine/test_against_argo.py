"""The same Workflow on a real Argo and here: the same nodes, phases, messages, edges and outputs."""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.engines.local import LocalEngine
from tests.engine.cases import dag, parameters, run, sh, task, workflow

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no cluster"),
]

OK = sh("ok", "true")
NO = sh("no", 'echo "it is \\"bad\\"" > "${FOXRUN_TERMINATION_LOG:-/dev/termination-log}"; exit 3')
SAY = sh(
    "say",
    'printf "%s\\n" "$1" > "$2"',
    "{{inputs.parameters.text}}",
    "{{outputs.parameters.said.path}}",
    inputs=parameters("text"),
    outputs={"parameters": [{"name": "said", "valueFrom": {"path": "/tmp/said", "default": "none"}}]},
)
BYE = sh("bye", "true", "{{workflow.status}}", "{{workflow.failures}}")
STEPS = {
    "name": "main",
    "steps": [
        [task("a", "say", arguments={"text": "A"}), task("b", "ok", when="1 == 2")],
        [task("c", "say", arguments={"text": "{{steps.a.outputs.parameters.said}} {{steps.a.status}}"})],
    ],
}
INNER = dag(
    task("x", "say", arguments={"text": "{{inputs.parameters.text}}!"}),
    name="inner",
    inputs=parameters("text"),
    outputs={"parameters": [{"name": "said", "valueFrom": {"parameter": "{{tasks.x.outputs.parameters.said}}"}}]},
)
CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "pair": lambda: workflow(
        dag(
            task("gate", "ok"),
            task("leg-a", "no", "gate.Succeeded"),
            task("leg-b", "say", "gate.Succeeded", {"text": "{{workflow.parameters.text}}"}),
            task(
                "compare", "say", "(leg-a.Succeeded || leg-a.Failed || leg-a.Errored) && (leg-b || leg-b.Failed)",
                {"text": "{{tasks.leg-a.status}} {{tasks.leg-b.outputs.parameters.said}}"},
            ),
            fail_fast=False,
        ),
        OK, NO, SAY, BYE, onExit="bye",
        arguments={"parameters": [{"name": "text", "value": 'é 💥 "q" \'s\' \\ \t end'}]},
    ),
    "omitted": lambda: workflow(
        dag(task("a", "no"), task("b", "ok", "a"), task("c", "ok", "b"), task("d", "ok", "b.Omitted"), fail_fast=False),
        OK, NO, BYE, onExit="bye",
    ),
    "when": lambda: workflow(
        dag(
            task("a", "say", arguments={"text": "no"}),
            task("b", "ok", "a", when="{{tasks.a.outputs.parameters.said}} == yes"),
            task("c", "ok", "b"),
            task("d", "ok", "b.Succeeded"),
        ),
        OK, NO, SAY,
    ),
    "continue": lambda: workflow(
        dag(task("a", "no", continueOn={"failed": True}), {**task("b", "ok"), "dependencies": ["a"]}), OK, NO,
    ),
    "retry": lambda: workflow(
        dag(task("a", "again"), task("b", "picky", "a.Failed"), task("c", "ok", "b")),
        {**NO, "name": "again", "retryStrategy": {"limit": "1"}},
        {**NO, "name": "picky", "retryStrategy": {"limit": "5", "retryPolicy": "Always",
            "expression": 'lastRetry.status == "Error" || lastRetry.exitCode in ["64", "65"]'}},
        OK,
    ),
    "steps": lambda: workflow(STEPS, OK, SAY),
    "nested": lambda: workflow(
        dag(task("one", "inner", arguments={"text": "1"}),
            task("two", "say", "one", {"text": "{{tasks.one.outputs.parameters.said}}2"})),
        INNER, SAY,
    ),
    "timeout": lambda: workflow(
        dag(task("a", "slow"), task("b", "ok", "a")), sh("slow", "exec sleep 600", timeout="20s"), OK,
    ),
    "killed": lambda: workflow(dag(task("a", "hit"), task("b", "ok", "a")), sh("hit", "exit 137"), OK),
}  # fmt: skip


def essence(done: dict[str, Any]) -> dict[str, Any]:
    """What a reader of the status relies on, without times, places and what only a cluster has."""
    nodes = done["status"]["nodes"]
    name = done["metadata"]["name"]
    same = ("type", "phase", "templateName", "displayName", "boundaryID", "id")
    shown = {}
    for node in nodes.values():
        outputs = node.get("outputs", {})
        shown[node["name"]] = {
            **{key: node.get(key, "") for key in same},
            "message": node.get("message", "").rstrip("\n"),
            "children": sorted(nodes[child]["name"] for child in node.get("children", [])),
            "inputs": node.get("inputs", {}).get("parameters", []),
            "outputs": outputs.get("parameters", []),
            "exitCode": outputs.get("exitCode", ""),
            # Argo counts what follows a DAG as if it were inside; here the count is of the DAG's own pods.
            "progress": node.get("progress", "") if node["type"] == "Pod" or node["name"] == name else "",
        }
    status = done["status"]
    return {"message": status.get("message", ""), **{key: status[key] for key in ("phase", "progress")}, "nodes": shown}


@pytest.fixture(scope="module")
def theirs() -> Iterator[dict[str, tuple[dict[str, Any], dict[str, Any]]]]:
    """Each case as it was submitted, and as a cluster ran it; all of them at once, since each takes long."""
    from tests.workflows.cluster import Cluster

    cluster = Cluster()
    submitted = {}
    for case, make in CASES.items():
        found = make()
        found["metadata"]["name"] = f"same-{case}-{uuid.uuid4().hex[:8]}"
        submitted[case] = found
    created = [cluster.create(for_cluster(found)) for found in submitted.values()]
    try:
        names = {case: found["metadata"]["name"] for case, found in submitted.items()}
        yield {case: (submitted[case], cluster.wait(name)) for case, name in names.items()}
    finally:
        for found in created:
            cluster.delete(found)


def for_cluster(submitted: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(submitted)
    found["spec"]["serviceAccountName"] = "foxrun"
    for template in found["spec"]["templates"]:
        if "container" in template:
            template["container"].update(image="localhost/busybox:1", imagePullPolicy="IfNotPresent")
            template["container"]["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_status_is_argos(
    engine: LocalEngine, theirs: dict[str, tuple[dict[str, Any], dict[str, Any]]], case: str
) -> None:
    submitted, done = theirs[case]
    assert essence(run(engine, submitted)) == essence(done)

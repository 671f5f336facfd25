# ruff: noqa: E501 -- tables, a case a line
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.engines.local import unsupported, validate
from tests.engine.cases import dag, parameters, sh, task, workflow

OK = sh("ok", "true")
GOLDEN = sorted((Path(__file__).parents[1] / "workflows" / "golden").glob("*.yaml"))


# A CronWorkflow is the cluster's own; what it starts is the template `nightly`.
@pytest.mark.parametrize("path", [p for p in GOLDEN if "cron" not in p.stem], ids=lambda path: path.stem)
def test_our_own_workflows_have_all_that_they_need(path: Path) -> None:
    loaded = yaml.safe_load(path.read_text())
    assert unsupported(loaded) == []
    assert validate(loaded) == []


def test_there_are_golden_workflows() -> None:
    assert GOLDEN


def place(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set what lies at a dotted path of a copy."""
    changed = copy.deepcopy(base)
    *steps, last = path.split(".")
    at: Any = changed
    for step in steps:
        at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
    at[last] = value
    return changed


BASE = workflow(dag(task("a", "ok", arguments={"x": "1"})), {**OK, "inputs": parameters("x")})


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("kind", "CronWorkflow", "kind 'CronWorkflow' (the local engine runs objects of kind Workflow)"),
        ("spec.hooks", {"exit": {"template": "ok"}}, "spec.hooks"),
        ("spec.synchronization", {"mutex": {"name": "m"}}, "spec.synchronization"),
        ("spec.workflowTemplateRef", {"name": "t"}, "spec.workflowTemplateRef"),
        ("spec.templateDefaults", {"timeout": "5s"}, "spec.templateDefaults"),
        ("spec.volumeClaimTemplates", [{"metadata": {}}], "spec.volumeClaimTemplates"),
        ("spec.suspend", True, "spec.suspend"),
        ("spec.somethingNew", 1, "spec.somethingNew"),
        ("spec.arguments", {"artifacts": [{"name": "a", "http": {"url": "x"}}]}, "spec.arguments.artifacts[a].http"),
        ("spec.arguments", {"parameters": [{"name": "a", "valueFrom": {"configMapKeyRef": {}}}]}, "spec.arguments.parameters[a].valueFrom"),
        ("spec.templates.0.dag.tasks.0.withItems", [1], "template 'main': dag.tasks[a].withItems"),
        ("spec.templates.0.dag.tasks.0.withParam", "[1]", "template 'main': dag.tasks[a].withParam"),
        ("spec.templates.0.dag.tasks.0.withSequence", {"count": 1}, "template 'main': dag.tasks[a].withSequence"),
        ("spec.templates.0.dag.tasks.0.templateRef", {"name": "t"}, "template 'main': dag.tasks[a].templateRef"),
        ("spec.templates.0.dag.tasks.0.inline", {}, "template 'main': dag.tasks[a].inline"),
        ("spec.templates.0.dag.tasks.0.onExit", "ok", "template 'main': dag.tasks[a].onExit"),
        ("spec.templates.0.dag.tasks.0.hooks", {"x": {}}, "template 'main': dag.tasks[a].hooks"),
        ("spec.templates.0.dag.tasks.0.when", "{{=1 > 2}}", "template 'main': dag.tasks[a].when has an expression tag {{=...}}"),
        ("spec.templates.0.timeout", "5s", "template 'main': timeout"),
        ("spec.templates.1.script", {"source": "x"}, "template 'ok': script"),
        ("spec.templates.1.resource", {"action": "get"}, "template 'ok': resource"),
        ("spec.templates.1.suspend", {}, "template 'ok': suspend"),
        ("spec.templates.1.http", {"url": "x"}, "template 'ok': http"),
        ("spec.templates.1.plugin", {"x": 1}, "template 'ok': plugin"),
        ("spec.templates.1.containerSet", {"containers": [1]}, "template 'ok': containerSet"),
        ("spec.templates.1.data", {"source": 1}, "template 'ok': data"),
        ("spec.templates.1.memoize", {"key": "x"}, "template 'ok': memoize"),
        ("spec.templates.1.synchronization", {"mutex": {}}, "template 'ok': synchronization"),
        ("spec.templates.1.daemon", True, "template 'ok': daemon"),
        ("spec.templates.1.sidecars", [{"name": "s"}], "template 'ok': sidecars"),
        ("spec.templates.1.initContainers", [{"name": "s"}], "template 'ok': initContainers"),
        ("spec.templates.1.podSpecPatch", "x", "template 'ok': podSpecPatch"),
        ("spec.templates.1.container.workingDir", "/x", "template 'ok': container.workingDir"),
        ("spec.templates.1.container.envFrom", [{}], "template 'ok': container.envFrom"),
        ("spec.templates.1.container.env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}], "template 'ok': container.env[A].valueFrom.fieldRef"),
        ("spec.templates.1.container.args", ["a", "{{=1}}"], "template 'ok': container.args has an expression tag {{=...}}"),
        ("spec.templates.1.outputs", {"parameters": [{"name": "p", "globalName": "g"}]}, "template 'ok': outputs.parameters[p].globalName"),
        ("spec.templates.1.outputs", {"parameters": [{"name": "p", "valueFrom": {"jqFilter": "."}}]}, "template 'ok': outputs.parameters[p].valueFrom.jqFilter"),
        ("spec.templates.1.outputs", {"artifacts": [{"name": "p", "archive": {"zip": {}}}]}, "template 'ok': outputs.artifacts[p].archive.zip"),
        ("spec.templates.1.outputs", {"result": "x"}, "template 'ok': outputs.result"),
        ("spec.templates.1.retryStrategy", {"limit": 1, "new": 2}, "template 'ok': retryStrategy.new"),
        ("spec.templates.1.inputs", [1], "template 'ok': inputs is not an object"),
        ("spec.templates.1.somethingNew", {"a": 1}, "template 'ok': somethingNew"),
    ],
)  # fmt: skip
def test_what_the_engine_does_not_have_is_named(path: str, value: Any, found: str) -> None:
    assert unsupported(BASE) == []
    assert unsupported(place(BASE, path, value)) == [found]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.podGC", {"strategy": "OnPodSuccess"}),
        ("spec.ttlStrategy", {"secondsAfterCompletion": 5}),
        ("spec.volumes", [{"name": "v", "emptyDir": {}}]),
        ("spec.serviceAccountName", "foxrun"),
        ("spec.archiveLogs", True),
        ("spec.templates.1.nodeSelector", {"gpu": "h200"}),
        ("spec.templates.1.tolerations", [{"key": "x"}]),
        ("spec.templates.1.sidecars", []),
        ("spec.templates.1.metrics", {"prometheus": [{"name": "x"}]}),
        ("spec.templates.1.container.resources", {"limits": {"cpu": "4"}}),
        ("spec.templates.1.container.volumeMounts", [{"name": "v", "mountPath": "/x"}]),
        ("status", {"phase": "Succeeded"}),
    ],
)
def test_what_has_no_meaning_here_is_accepted(path: str, value: Any) -> None:
    changed = place(BASE, path, value)
    assert unsupported(changed) == []
    assert validate(changed) == []


@pytest.mark.parametrize(
    ("path", "value", "problems"),
    [
        ("metadata", {}, ["metadata has neither name nor generateName"]),
        ("metadata.name", "Not_Legal", ["metadata: 'Not_Legal' makes no legal name (63 lower-case letters, digits, dashes and dots)"]),
        ("spec.entrypoint", "gone", ["spec.entrypoint: no template 'gone'"]),
        ("spec.parallelism", 0, ["spec.parallelism: 0 is no positive number"]),
        ("spec.activeDeadlineSeconds", "{{workflow.parameters.x}}", ["spec.activeDeadlineSeconds: '{{workflow.parameters.x}}' is no positive number"]),
        ("spec.onExit", "gone", ["spec.onExit: no template 'gone'"]),
        ("spec.onExit", "ok", ["spec.onExit: template 'ok' needs parameter 'x'"]),
        ("spec.arguments", {"parameters": [{"name": "p"}]}, ["spec.arguments: parameter 'p' has no value"]),
        ("spec.templates.0.dag.tasks", [], ["template 'main': dag.tasks is empty"]),
        ("spec.templates.0.dag.tasks.0.template", "gone", ["template 'main': task 'a': no template 'gone'"]),
        ("spec.templates.0.dag.tasks.0.arguments", {}, ["template 'main': task 'a': template 'ok' needs parameter 'x'"]),
        ("spec.templates.0.dag.tasks.0.depends", "b.Succeeded", ["template 'main': task 'a' depends on 'b', which does not exist"]),
        ("spec.templates.0.dag.tasks.0.depends", "a", ["template 'main': tasks depend on each other: a -> a"]),
        ("spec.templates.0.dag.tasks.0.depends", "(b", ["template 'main': depends: '(b': expected ')', found the end at position 2"]),
        ("spec.templates.0.dag.tasks.0.when", "a ==", ["template 'main': task 'a': when: 'a ==': expected a value, found the end at position 4"]),
        ("spec.templates.0.dag.tasks.0.when", "{{tasks.b.status}} == x", ["template 'main': task 'a': when: {{tasks.b.status}} is no value that is there by then"]),
        ("spec.templates.0.dag.target", "b", ["template 'main': dag.target: no task 'b'"]),
        ("spec.templates.1.container.command", [], ["template 'ok': container.command is needed: no image stands behind a process, whose entrypoint could take its place"]),
        ("spec.templates.1.container.args", ["{{inputs.parameters.y}}"], ["template 'ok': container.args[0]: nothing gives {{inputs.parameters.y}} a value"]),
        ("spec.templates.1.container.args", ["{{workflow.status}}"], ["template 'ok': container.args[0]: nothing gives {{workflow.status}} a value"]),
        ("spec.templates.1.container.args", ["{{workflow.parameters.p}}"], ["template 'ok': container.args[0]: nothing gives {{workflow.parameters.p}} a value"]),
        ("spec.templates.1.container.args", ["{{retries}}"], ["template 'ok': container.args[0]: nothing gives {{retries}} a value"]),
        ("spec.templates.1.timeout", "soon", ["template 'ok': timeout: 'soon' is not a duration such as 90, 90s or 1h30m"]),
        ("spec.templates.1.retryStrategy", {"limit": "x"}, ["template 'ok': retryStrategy.limit: 'x' is no number"]),
        ("spec.templates.1.retryStrategy", {"retryPolicy": "Never"}, ["template 'ok': retryStrategy.retryPolicy: 'Never' is none of Always, OnFailure, OnError, OnTransientError"]),
        ("spec.templates.1.retryStrategy", {"expression": "lastRetry.code == 1"}, ["template 'ok': retryStrategy.expression: no variable 'lastRetry.code'"]),
        ("spec.templates.1.outputs", {"parameters": [{"name": "p"}]}, ["template 'ok': outputs.parameters.p needs valueFrom.path"]),
        ("spec.templates.1.outputs", {"artifacts": [{"name": "p", "path": "../x"}]}, ["template 'ok': outputs.artifacts.p: path '../x' is not an absolute path inside the container"]),
        ("spec.templates.1.outputs", {"artifacts": [{"name": "p", "path": "/a/../../x"}]}, ["template 'ok': outputs.artifacts.p: path '/a/../../x' is not an absolute path inside the container"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_before_anything_runs(path: str, value: Any, problems: list[str]) -> None:
    assert validate(BASE) == []
    assert validate(place(BASE, path, value)) == problems


def test_a_cycle_is_shown() -> None:
    tasks = [task("a", "ok", "c"), task("b", "ok", "a"), task("c", "ok", "b || b.Failed")]
    assert validate(workflow(dag(*tasks), OK)) == ["template 'main': tasks depend on each other: a -> c -> b -> a"]


def test_only_what_has_ended_by_then_can_be_referred_to() -> None:
    give = {
        **OK,
        "outputs": {
            "parameters": [{"name": "o", "valueFrom": {"path": "/o"}}],
            "artifacts": [{"name": "f", "path": "/f"}],
        },
    }
    take = sh("take", "true", inputs={**parameters("x"), "artifacts": [{"name": "f", "path": "/f", "optional": True}]})

    def problems(value: str, origin: str, depends: str = "a") -> list[str]:
        b = task("b", "take", depends, {"x": value})
        b["arguments"]["artifacts"] = [{"name": "f", "from": origin}]
        return validate(workflow(dag(task("a", "ok"), task("c", "ok"), b), give, take))

    good = ("{{tasks.a.outputs.parameters.o}}", "{{tasks.a.outputs.artifacts.f}}")
    where = "template 'main': task 'b': arguments"
    assert problems(*good) == []
    assert problems(good[0].replace(".o}", ".p}"), good[1]) == [
        f"{where}.parameters[0].value: {{{{tasks.a.outputs.parameters.p}}}} is no value that is there by then"
    ]
    assert problems(good[0], "{{tasks.c.outputs.artifacts.f}}") == [
        f"{where}.artifacts[0].from: {{{{tasks.c.outputs.artifacts.f}}}} is no artifact that is there by then"
    ]
    assert problems("x", good[1] + "/x") == [
        "template 'main': task 'b': artifact 'f': from must be one tag, not '{{tasks.a.outputs.artifacts.f}}/x'"
    ]


def test_the_status_is_known_in_the_exit_handler_alone() -> None:
    bye = sh("bye", "true", "{{workflow.status}} {{workflow.failures}}")
    assert validate(workflow(OK, bye, onExit="bye")) == []
    assert len(validate(workflow(OK, bye))) == 2


def test_a_container_path_that_is_written_out_is_refused() -> None:
    out = {"artifacts": [{"name": "run", "path": "/out"}]}
    for word, count in (
        ("/out", 1),
        ("--to=/out/x", 1),
        ("'/out'", 1),
        ("/output", 0),
        ("/a/out", 0),
        ("{{outputs.artifacts.run.path}}", 0),
    ):
        assert len(validate(workflow(sh("main", "true", word, outputs=out)))) == count, word


@pytest.mark.parametrize("broken", [None, [], "x", {"spec": None}, {"spec": {"templates": "x"}}, {"spec": {"templates": [1, {"name": 3}]}},
    {"spec": {"templates": [{"name": "a", "dag": 1}, {"name": "b", "steps": [1, [2]]}, {"name": "c", "container": "x"}]}},
    {"spec": {"templates": [{"name": "a", "dag": {"tasks": [1, {}, {"name": "x", "depends": 5}]}}]}}])  # fmt: skip
def test_nonsense_is_refused_and_never_a_traceback(broken: Any) -> None:
    found = {
        "kind": "Workflow",
        "metadata": {"name": "x"},
        **(broken if isinstance(broken, dict) else {"spec": broken}),
    }
    assert unsupported(found) or validate(found)
    validate(found)

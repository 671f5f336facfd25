"""What is wrong with the calls of a DAG or of steps: templates, arguments, dependencies, what they refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.engines.local.depends import RESULTS, Dag
from orchestrator.engines.local.expression import WHEN, ExpressionError, parse
from orchestrator.engines.local.substitution import pure_tag, tags_in
from orchestrator.engines.local.supported import as_list, as_map
from orchestrator.engines.local.templates import calls_of, items, missing_arguments
from orchestrator.engines.local.validate_template import input_tag_names

_OF_NODES = ("id", "status", "startedAt", "finishedAt", "exitCode", "hostNodeName")

Templates = Mapping[str, Mapping[str, Any]]


def dag_problems(template: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the names and the order of a DAG's tasks or of steps."""
    names = Counter(call.get("name") for call in calls_of(template))
    for name, count in names.items():
        if not name:
            yield "a task or step has no name"
        elif count > 1:
            yield f"task or step {name!r} is there twice"
    if "dag" not in template:
        return
    if not items(template, "dag", "tasks"):
        yield "dag.tasks is empty"
        return
    dag = _parsed(template)
    if isinstance(dag, str):
        yield dag
        return
    for task in dag.tasks.values():
        if task.get("depends") and task.get("dependencies"):
            yield f"task {task['name']!r} has both depends and dependencies"
        if task.get("depends") and task.get("continueOn"):
            yield f"task {task['name']!r} has both depends and continueOn"
        yield from _dependency_problems(dag, task)
    for target in dag.targets:
        if target not in dag.tasks:
            yield f"dag.target: no task {target!r}"
    cycle = _cycle(dag)
    if cycle:
        yield f"tasks depend on each other: {' -> '.join(cycle)}"


def _parsed(template: Mapping[str, Any]) -> Dag | str:
    tasks = items(template, "dag", "tasks")
    if not tasks or any(not isinstance(task.get("name"), str) for task in tasks):
        return "a task has no name"
    try:
        return Dag(template)
    except ExpressionError as error:
        return f"depends: {error}"
    except TypeError:
        return "depends or dependencies is neither text nor a list of names"


def _dependency_problems(dag: Dag, task: Mapping[str, Any]) -> Iterator[str]:
    condition = dag.condition(task["name"])
    for name in condition.names if condition else ():
        dependency, dot, result = name.rpartition(".")
        if (dependency or name) not in dag.tasks:
            yield f"task {task['name']!r} depends on {dependency or name!r}, which does not exist"
        elif dot and result not in RESULTS:
            yield f"task {task['name']!r}: {name!r} asks for {result!r}, which is none of {', '.join(RESULTS)}"


def _cycle(dag: Dag) -> list[str]:
    """Return the tasks of a cycle, the first once more at the end, or an empty list."""
    done: set[str] = set()

    def visit(task: str, path: list[str]) -> list[str]:
        if task in path:
            return [*path[path.index(task) :], task]
        if task in done or task not in dag.tasks:
            return []
        for dependency in dag.dependencies(task):
            found = visit(dependency, [*path, task])
            if found:
                return found
        done.add(task)
        return []

    for task in dag.tasks:
        found = visit(task, [])
        if found:
            return found
    return []


def call_problems(template: Mapping[str, Any], templates: Templates, workflow_tags: set[str]) -> Iterator[str]:
    """Yield what is wrong with the calls of a DAG or of steps, and with the outputs that refer to them."""
    own = workflow_tags | input_tag_names(template)
    brought = {f"inputs.artifacts.{a.get('name')}" for a in items(template, "inputs", "artifacts")}
    earlier: list[Mapping[str, Any]] = []
    if "dag" in template:
        dag = _parsed(template)
        if isinstance(dag, str) or _cycle(dag):
            return
        for task in dag.tasks.values():
            before = [dag.tasks[name] for name in dag.ancestors(task["name"])]
            yield from _one(task, "tasks", before, templates, own, brought)
        earlier = list(dag.tasks.values())
    elif "steps" in template:
        for group in as_list(template["steps"]):
            for step in as_list(group):
                yield from _one(as_map(step), "steps", earlier, templates, own, brought)
            earlier = [*earlier, *(as_map(step) for step in as_list(group))]
    else:
        return
    prefix = "tasks" if "dag" in template else "steps"
    yield from _tag_problems(as_map(template.get("outputs")), "outputs: ", prefix, earlier, templates, own, brought)


def _one(
    call: Mapping[str, Any],
    prefix: str,
    before: list[Mapping[str, Any]],
    templates: Templates,
    own: set[str],
    brought: set[str],
) -> Iterator[str]:
    where = f"{prefix[:-1]} {call.get('name')!r}: "
    called = templates.get(call.get("template", ""))
    if called is None:
        yield f"{where}no template {call.get('template')!r}"
        return
    given = {p.get("name") for p in items(call, "arguments", "parameters") if p.get("value") is not None}
    artifacts = {a.get("name") for a in items(call, "arguments", "artifacts")}
    yield from missing_arguments(called, given, artifacts, where)
    if call.get("when"):
        try:
            parse(str(call["when"]), WHEN)
        except ExpressionError as error:
            yield f"{where}when: {error}"
    used = {"arguments": call.get("arguments"), "when": call.get("when")}
    yield from _tag_problems(used, where, prefix, before, templates, own, brought)


def _tag_problems(
    value: Mapping[str, Any],
    where: str,
    prefix: str,
    before: list[Mapping[str, Any]],
    templates: Templates,
    own: set[str],
    brought: set[str],
) -> Iterator[str]:
    tags, artifacts = set(own), set(brought)
    for call in before:
        name = f"{prefix}.{call.get('name')}"
        called = templates.get(call.get("template", ""), {})
        tags |= {f"{name}.{word}" for word in _OF_NODES}
        tags |= {f"{name}.outputs.parameters.{p.get('name')}" for p in items(called, "outputs", "parameters")}
        artifacts |= {f"{name}.outputs.artifacts.{a.get('name')}" for a in items(called, "outputs", "artifacts")}
    for place, tag in tags_in(value):
        is_reference = place.endswith(".from") or place == "from"
        if tag not in (artifacts if is_reference else tags):
            kind = "artifact" if is_reference else "value"
            yield f"{where}{place}: {{{{{tag}}}}} is no {kind} that is there by then"
    for artifact in items(value, "arguments", "artifacts") + items(value, "artifacts"):
        if "from" in artifact and pure_tag(artifact["from"]) is None:
            yield f"{where}artifact {artifact.get('name')!r}: from must be one tag, not {artifact['from']!r}"

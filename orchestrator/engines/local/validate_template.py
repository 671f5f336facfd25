"""What is wrong with one template by itself: its inputs and outputs, its command, its times, its tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.engines.local.expression import RETRY, ExpressionError, parse
from orchestrator.engines.local.outputs import place_inside
from orchestrator.engines.local.retries import POLICIES, last_retry
from orchestrator.engines.local.substitution import tags_in
from orchestrator.engines.local.supported import as_list, as_map
from orchestrator.engines.local.templates import items
from orchestrator.engines.local.values import duration_s, text_of
from orchestrator.errors import FoxrunError

_RETRY_NAMES = {"retries", *last_retry([])}


def template_problems(template: Mapping[str, Any], workflow_tags: set[str]) -> Iterator[str]:
    """Yield the problems of a template; `workflow_tags` are the tags that have a value everywhere in it."""
    yield from _names(template)
    if "container" in template:
        yield from _container(template)
    yield from _times(template)
    yield from _retry(as_map(template.get("retryStrategy")))
    known = workflow_tags | input_tag_names(template)
    if "container" in template:
        known |= _pod_tag_names(template)
    # The calls of a DAG or of steps have tags of their own, and so have the outputs that refer to them.
    left_out = {"dag", "steps", "outputs"} if "container" not in template else set()
    left_out |= {"metrics"}  # have no meaning here, and tags that only Argo's controller gives a value
    for where, tag in tags_in({key: value for key, value in template.items() if key not in left_out}):
        if tag not in known:
            yield f"{where}: nothing gives {{{{{tag}}}}} a value"


def input_tag_names(template: Mapping[str, Any]) -> set[str]:
    """Return the tags of a template's own input parameters."""
    return {
        "inputs.parameters",
        *(f"inputs.parameters.{p.get('name')}" for p in items(template, "inputs", "parameters")),
    }


def _pod_tag_names(template: Mapping[str, Any]) -> set[str]:
    names = {"pod.name", "node.name"}
    for way in ("inputs", "outputs"):
        names |= {f"{way}.artifacts.{a.get('name')}.path" for a in items(template, way, "artifacts")}
    names |= {f"outputs.parameters.{p.get('name')}.path" for p in items(template, "outputs", "parameters")}
    return names | _RETRY_NAMES if template.get("retryStrategy") else names


def _names(template: Mapping[str, Any]) -> Iterator[str]:
    for way in ("inputs", "outputs"):
        for kind in ("parameters", "artifacts"):
            counted = Counter(item.get("name") for item in items(template, way, kind))
            for name, count in counted.items():
                if not name:
                    yield f"{way}.{kind}: one has no name"
                elif count > 1:
                    yield f"{way}.{kind}: {name!r} is there twice"
    is_pod = "container" in template
    for parameter in items(template, "outputs", "parameters"):
        source = as_map(parameter.get("valueFrom"))
        if "value" not in parameter and ("path" if is_pod else "parameter") not in source:
            need = "valueFrom.path" if is_pod else "valueFrom.parameter"
            yield f"outputs.parameters.{parameter.get('name')} needs {need}"
    for artifact in items(template, "outputs", "artifacts"):
        need = "path" if is_pod else "from"
        if need not in artifact:
            yield f"outputs.artifacts.{artifact.get('name')} needs {need}"


def _container(template: Mapping[str, Any]) -> Iterator[str]:
    container = as_map(template.get("container"))
    command = container.get("command")
    if not isinstance(command, list) or not command:
        yield "container.command is needed: no image stands behind a process, whose entrypoint could take its place"
    for entry in items(container, "env"):
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            yield "container.env: one has no name"
    paths: dict[str, str] = {}
    for way in ("inputs", "outputs"):
        for artifact in items(template, way, "artifacts"):
            paths[f"{way}.artifacts.{artifact.get('name')}"] = artifact.get("path", "")
    for parameter in items(template, "outputs", "parameters"):
        if "path" in as_map(parameter.get("valueFrom")):
            paths[f"outputs.parameters.{parameter.get('name')}"] = parameter["valueFrom"]["path"]
    words = [*as_list(command), *as_list(container.get("args")), *(e.get("value") for e in items(container, "env"))]
    for name, path in paths.items():
        try:
            place_inside(Path("/"), str(path))
        except FoxrunError as error:
            yield f"{name}: {error}"
            continue
        literal = re.compile(rf"(?<![\w/.-]){re.escape(str(path).rstrip('/'))}(?![\w.-])")
        if "{{" not in str(path) and any(literal.search(text_of(word)) for word in words if word is not None):
            yield f"container names {path} itself: write {{{{{name}.path}}}}, since a process has no root of its own"


def _times(template: Mapping[str, Any]) -> Iterator[str]:
    for field in ("timeout", "activeDeadlineSeconds"):
        yield from _duration(template.get(field), field)
    yield from count_problems(template, "parallelism")


def _retry(strategy: Mapping[str, Any]) -> Iterator[str]:
    limit = strategy.get("limit")
    if limit is not None and not _is_count(limit):
        yield f"retryStrategy.limit: {limit!r} is no number"
    policy = strategy.get("retryPolicy")
    if policy is not None and policy not in POLICIES:
        yield f"retryStrategy.retryPolicy: {policy!r} is none of {', '.join(POLICIES)}"
    backoff = as_map(strategy.get("backoff"))
    if backoff and "duration" not in backoff:
        yield "retryStrategy.backoff needs a duration"
    for field in ("duration", "maxDuration", "cap"):
        yield from _duration(backoff.get(field), f"retryStrategy.backoff.{field}")
    if backoff.get("factor") is not None and not _is_count(backoff["factor"]):
        yield f"retryStrategy.backoff.factor: {backoff['factor']!r} is no number"
    expression = strategy.get("expression")
    if expression:
        try:
            unknown = [name for name in parse(str(expression), RETRY).names if name not in _RETRY_NAMES]
        except ExpressionError as error:
            yield f"retryStrategy.expression: {error}"
        else:
            yield from (f"retryStrategy.expression: no variable {name!r}" for name in unknown)


def _duration(value: Any, where: str) -> Iterator[str]:
    if value is not None and "{{" not in str(value):
        try:
            duration_s(value)
        except ValueError as error:
            yield f"{where}: {error}"


def count_problems(value: Mapping[str, Any], field: str) -> Iterator[str]:
    """Yield a problem when a field is there and is no positive number."""
    count = value.get(field)
    if count is not None and (isinstance(count, bool) or not re.fullmatch(r"[1-9]\d*", str(count))):
        yield f"{field}: {count!r} is no positive number"


def _is_count(value: Any) -> bool:
    return "{{" in str(value) or (not isinstance(value, bool) and re.fullmatch(r"\d+", str(value)) is not None)

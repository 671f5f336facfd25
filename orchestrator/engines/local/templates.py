"""Looking into templates as they were submitted, whose parts may be missing or of another type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.engines.local.supported import as_list, as_map


def items(value: Mapping[str, Any], *path: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list that lies at a path of keys; an empty list when there is none."""
    for step in path[:-1]:
        value = as_map(value.get(step))
    return [as_map(item) for item in as_list(value.get(path[-1]))]


def missing_arguments(template: Mapping[str, Any], given: set[Any], brought: set[Any], where: str) -> Iterator[str]:
    """Yield a problem for each input that has no value of its own and is not given."""
    for parameter in items(template, "inputs", "parameters"):
        has_own = parameter.get("value") is not None or parameter.get("default") is not None
        if parameter.get("name") not in given and not has_own:
            yield f"{where}template {template['name']!r} needs parameter {parameter.get('name')!r}"
    for artifact in items(template, "inputs", "artifacts"):
        if artifact.get("name") not in brought and not artifact.get("optional") and "s3" not in artifact:
            yield f"{where}template {template['name']!r} needs artifact {artifact.get('name')!r}"


def reachable(templates: Mapping[str, Mapping[str, Any]], start: Any) -> set[str]:
    """Return the templates that one calls, directly or not, itself among them."""
    found: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name in templates and name not in found:
            found.add(name)
            todo.extend(call.get("template") for call in calls_of(templates[name]))
    return found


def calls_of(template: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tasks or steps of a template."""
    if "dag" in template:
        return items(template, "dag", "tasks")
    return [as_map(step) for group in as_list(template.get("steps")) for step in as_list(group)]

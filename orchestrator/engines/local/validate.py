"""What is wrong with a Workflow, found before anything runs: names, templates, arguments, tags, expressions, cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.engines.base import Workflow
from orchestrator.engines.local.state import LEGAL_NAME
from orchestrator.engines.local.supported import as_list, as_map
from orchestrator.engines.local.templates import items, missing_arguments, reachable
from orchestrator.engines.local.validate_calls import call_problems, dag_problems
from orchestrator.engines.local.validate_template import count_problems, template_problems

_KINDS = ("container", "dag", "steps")
_SUFFIX_LENGTH = 5


def validate(workflow: Workflow) -> list[str]:
    """Return the problems of a Workflow, each with where it stands; an empty list when it can run.

    Constructs that the local engine does not have are found by `unsupported`, not here.
    """
    metadata, spec = as_map(workflow.get("metadata")), as_map(workflow.get("spec"))
    problems = list(_name_problems(metadata))
    templates = _templates(spec, problems)
    for field in ("entrypoint", "onExit"):
        wanted = spec.get(field)
        if wanted is None and field == "onExit":
            continue
        if wanted not in templates:
            problems.append(f"spec.{field}: no template {wanted!r}")
    problems += _argument_problems(spec)
    for field in ("parallelism", "activeDeadlineSeconds"):
        problems += [f"spec.{problem}" for problem in count_problems(spec, field)]
    at_exit = reachable(templates, spec.get("onExit")) - reachable(templates, spec.get("entrypoint"))
    for name, template in templates.items():
        where = f"template {name!r}: "
        tags = workflow_tag_names(workflow, at_exit=name in at_exit)
        found = [*template_problems(template, tags), *dag_problems(template)]
        found += call_problems(template, templates, tags)
        problems += [where + problem for problem in found]
    for field in ("entrypoint", "onExit"):
        if spec.get(field) in templates:
            given = {p.get("name") for p in items(spec, "arguments", "parameters")}
            brought = {a.get("name") for a in items(spec, "arguments", "artifacts")}
            problems += missing_arguments(templates[spec[field]], given, brought, f"spec.{field}: ")
    return problems


def _name_problems(metadata: Mapping[str, Any]) -> Iterator[str]:
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if not name and not prefix:
        yield "metadata has neither name nor generateName"
    text = name or f"{prefix}{'x' * _SUFFIX_LENGTH}"
    if (name or prefix) and not (isinstance(text, str) and LEGAL_NAME.fullmatch(text)):
        yield f"metadata: {name or prefix!r} makes no legal name (63 lower-case letters, digits, dashes and dots)"


def _templates(spec: Mapping[str, Any], problems: list[str]) -> dict[str, Mapping[str, Any]]:
    templates: dict[str, Mapping[str, Any]] = {}
    for index, template in enumerate(as_list(spec.get("templates"))):
        name = as_map(template).get("name")
        if not isinstance(name, str) or not name:
            problems.append(f"spec.templates[{index}] has no name")
        elif name in templates:
            problems.append(f"template {name!r} is there twice")
        else:
            kinds = [kind for kind in _KINDS if kind in template]
            if len(kinds) != 1:
                problems.append(
                    f"template {name!r} needs one of {', '.join(_KINDS)}; it has {' and '.join(kinds) or 'none'}"
                )
            templates[name] = template
    return templates


def _argument_problems(spec: Mapping[str, Any]) -> Iterator[str]:
    for parameter in items(spec, "arguments", "parameters"):
        if parameter.get("value") is None:
            yield f"spec.arguments: parameter {parameter.get('name')!r} has no value"
    for artifact in items(spec, "arguments", "artifacts"):
        if not as_map(artifact.get("s3")).get("key"):
            yield f"spec.arguments: artifact {artifact.get('name')!r} has no s3.key"
    names = Counter(item.get("name") for kind in ("parameters", "artifacts") for item in items(spec, "arguments", kind))
    yield from (f"spec.arguments: {name!r} is there twice" for name, count in names.items() if count > 1)


def workflow_tag_names(workflow: Workflow, *, at_exit: bool) -> set[str]:
    """Return the `{{workflow...}}` tags that have a value."""
    metadata, spec = as_map(workflow.get("metadata")), as_map(workflow.get("spec"))
    simple = "name namespace uid mainEntrypoint serviceAccountName parameters parameters.json labels labels.json"
    simple += " annotations annotations.json creationTimestamp creationTimestamp.RFC3339 creationTimestamp.s"
    names = {f"workflow.{word}" for word in simple.split()}
    names |= {f"workflow.parameters.{p.get('name')}" for p in items(spec, "arguments", "parameters")}
    for kind in ("labels", "annotations"):
        names |= {f"workflow.{kind}.{key}" for key in as_map(metadata.get(kind))}
    return names | {"workflow.status", "workflow.failures", "workflow.duration"} if at_exit else names

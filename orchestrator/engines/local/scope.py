"""Which tags have which values where: the workflow's, a template's inputs, and what other nodes left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from orchestrator.engines.base import Workflow
from orchestrator.engines.local.nodes import Node
from orchestrator.engines.local.substitution import Scope, UnresolvedTag, pure_tag, substitute
from orchestrator.engines.local.values import text_of

Tags = dict[str, str | None]
Artifact = dict[str, Any]


class BadArguments(ValueError):
    """A template is called without what it needs."""


def workflow_tags(workflow: Workflow) -> Tags:
    """Return the `{{workflow...}}` tags that hold from the beginning to the end of a run."""
    metadata, spec = workflow["metadata"], workflow["spec"]
    created = metadata["creationTimestamp"]
    moment = datetime.fromisoformat(created)
    parameters = {p["name"]: text_of(p.get("value", "")) for p in spec.get("arguments", {}).get("parameters", [])}
    tags: Tags = {
        "workflow.name": metadata["name"],
        "workflow.namespace": metadata["namespace"],
        "workflow.uid": metadata["uid"],
        "workflow.mainEntrypoint": spec["entrypoint"],
        "workflow.serviceAccountName": spec.get("serviceAccountName", "default"),
        "workflow.creationTimestamp": moment.strftime("%Y-%m-%d %H:%M:%S +0000 UTC"),
        "workflow.creationTimestamp.RFC3339": created,
        "workflow.creationTimestamp.s": str(int(moment.timestamp())),
    }
    listed = _json([{"name": name, "value": value} for name, value in parameters.items()])
    tags["workflow.parameters"] = tags["workflow.parameters.json"] = listed
    for kind in ("labels", "annotations"):
        values = {name: text_of(value) for name, value in (metadata.get(kind) or {}).items()}
        tags[f"workflow.{kind}"] = tags[f"workflow.{kind}.json"] = _json(values)
        tags.update({f"workflow.{kind}.{name}": value for name, value in values.items()})
    tags.update({f"workflow.parameters.{name}": value for name, value in parameters.items()})
    return tags


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def input_tags(node: Node) -> Tags:
    """Return the `{{inputs.parameters...}}` tags of a node."""
    parameters = node.get("inputs", {}).get("parameters", [])
    tags: Tags = {f"inputs.parameters.{p['name']}": p["value"] for p in parameters}
    tags["inputs.parameters"] = _json([{"name": p["name"], "value": p["value"]} for p in parameters])
    return tags


def node_tags(prefix: str, node: Node, template: Mapping[str, Any] | None) -> Tags:
    """Return the tags of a node that others refer to as `prefix` (`tasks.X` or `steps.X`).

    An output that the template declares and the node did not leave is there as None, or as its default.
    """
    outputs = node.get("outputs", {})
    tags: Tags = {
        f"{prefix}.id": node["id"],
        f"{prefix}.status": node["phase"],
        f"{prefix}.startedAt": node.get("startedAt", ""),
        f"{prefix}.finishedAt": node.get("finishedAt", ""),
        f"{prefix}.hostNodeName": "localhost",
    }
    if "exitCode" in outputs:
        tags[f"{prefix}.exitCode"] = outputs["exitCode"]
    elif template is None or "container" in template:
        tags[f"{prefix}.exitCode"] = None
    for declared in (template or {}).get("outputs", {}).get("parameters", []):
        default = declared.get("valueFrom", {}).get("default")
        tags[f"{prefix}.outputs.parameters.{declared['name']}"] = None if default is None else text_of(default)
    for parameter in outputs.get("parameters", []):
        tags[f"{prefix}.outputs.parameters.{parameter['name']}"] = parameter["value"]
    return tags


def artifacts_of(prefix: str, artifacts: Iterable[Artifact]) -> dict[str, Artifact]:
    """Return artifacts by the tag that refers to them."""
    return {f"{prefix}.{artifact['name']}": artifact for artifact in artifacts}


def given_arguments(
    arguments: Mapping[str, Any], scope: Scope, artifacts: Mapping[str, Artifact]
) -> tuple[dict[str, str | None], dict[str, Artifact | None]]:
    """Return the values of a call's arguments; None for what refers to an output that was not left.

    Raises UnresolvedTag or BadArguments.
    """
    values: dict[str, str | None] = {}
    for parameter in arguments.get("parameters") or []:
        raw = parameter.get("value")
        tag = pure_tag(raw)
        if raw is not None:
            values[parameter["name"]] = None if tag and scope.is_absent(tag) else text_of(substitute(raw, scope))
    found: dict[str, Artifact | None] = {}
    for argument in arguments.get("artifacts") or []:
        name = argument["name"]
        if "from" in argument:
            found[name] = artifacts.get(pure_tag(argument["from"]) or "")
            if found[name] is None and not argument.get("optional"):
                found[name] = {"missing": argument["from"]}
        elif "s3" in argument:
            found[name] = {"s3": {"key": substitute(argument["s3"]["key"], scope)}}
        else:
            raise BadArguments(f"argument artifact {name!r} has neither from nor s3")
    return values, found


def bind_inputs(
    template: Mapping[str, Any],
    values: Mapping[str, str | None],
    artifacts: Mapping[str, Artifact | None],
    scope: Scope,
) -> dict[str, Any]:
    """Return a template's inputs with the values of a call, in Argo's shape.

    Raises BadArguments when something is missing, and UnresolvedTag.
    """
    declared = template.get("inputs", {})
    inputs: dict[str, Any] = {}
    for parameter in declared.get("parameters", []):
        name = parameter["name"]
        value = values.get(name)
        if value is None:
            fallback = parameter.get("value", parameter.get("default"))
            if fallback is None:
                raise BadArguments(f"inputs.parameters.{name} of template {template['name']!r} was not supplied")
            value = text_of(substitute(fallback, scope))
        if parameter.get("enum") and value not in [text_of(choice) for choice in parameter["enum"]]:
            raise BadArguments(f"inputs.parameters.{name} of template {template['name']!r}: {value!r} is no choice")
        inputs.setdefault("parameters", []).append({"name": name, "value": value})
    tags = Scope({f"inputs.parameters.{p['name']}": p["value"] for p in inputs.get("parameters", [])}, *scope.layers)
    for item in declared.get("artifacts", []):
        name = item["name"]
        given = artifacts.get(name)
        if given is None and "s3" in item:
            given = {"s3": {"key": substitute(item["s3"]["key"], tags)}}
        if given is None or "missing" in given:
            if item.get("optional"):
                continue
            why = f": {given['missing']} does not exist" if given else ""
            raise BadArguments(f"inputs.artifacts.{name} of template {template['name']!r} was not supplied{why}")
        bound = {"name": name, "s3": {"key": given["s3"]["key"]}}
        if "path" in item:
            bound["path"] = item["path"]
        inputs.setdefault("artifacts", []).append(bound)
    return inputs


def inner_outputs(template: Mapping[str, Any], scope: Scope, artifacts: Mapping[str, Artifact]) -> dict[str, Any]:
    """Return the outputs of a DAG or of steps, which refer to those of the nodes inside. Raises UnresolvedTag."""
    outputs: dict[str, Any] = {}
    for parameter in template.get("outputs", {}).get("parameters", []):
        source = parameter.get("valueFrom", {})
        raw = parameter.get("value", source.get("parameter"))
        try:
            value = substitute(text_of(raw), scope)
        except UnresolvedTag:
            if "default" not in source:
                raise
            value = substitute(text_of(source["default"]), scope)
        outputs.setdefault("parameters", []).append({"name": parameter["name"], "value": value})
    for item in template.get("outputs", {}).get("artifacts", []):
        found = artifacts.get(pure_tag(item.get("from")) or "")
        if found is not None:
            outputs.setdefault("artifacts", []).append({"name": item["name"], "s3": {"key": found["s3"]["key"]}})
        elif not item.get("optional"):
            raise UnresolvedTag(str(item.get("from", "")).strip("{} "), f"output artifact {item['name']!r}")
    return outputs

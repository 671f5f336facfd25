"""What of a Workflow the local engine executes, what has no meaning here, and what it refuses by name.

An allow-list at every level: a field of Argo that this page does not know is refused rather than ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

IGNORED = "ignored"
"""No meaning for processes of one machine: scheduling, images, rights in a cluster, housekeeping."""
USED = "used"
"""A plain value that the engine uses."""

Shape = Any  # USED, IGNORED, {field: Shape} for an object, or [Shape] for a list

_SECRET = {"valueFrom": {"secretKeyRef": {"name": USED, "key": USED, "optional": USED}}}
_ENVIRONMENT = [{"name": USED, "value": USED, **_SECRET}]

_CONTAINER = {
    "command": USED,
    "args": USED,
    "env": _ENVIRONMENT,
    "name": IGNORED,
    "image": IGNORED,
    "imagePullPolicy": IGNORED,
    "resources": IGNORED,
    "securityContext": IGNORED,
    "terminationMessagePath": IGNORED,
    "terminationMessagePolicy": IGNORED,
    "volumeMounts": IGNORED,
}

_ARTIFACT = {
    "name": USED,
    "path": USED,
    "from": USED,
    "optional": USED,
    "description": IGNORED,
    "archive": {"none": IGNORED, "tar": IGNORED},
    "artifactGC": IGNORED,
    "mode": IGNORED,
    "s3": {
        "key": USED,
        **dict.fromkeys(
            ("bucket", "endpoint", "region", "insecure", "accessKeySecret", "secretKeySecret", "useSDKCreds"), IGNORED
        ),
    },
}
_INPUTS = {
    "parameters": [{"name": USED, "value": USED, "default": USED, "enum": USED, "description": IGNORED}],
    "artifacts": [_ARTIFACT],
}
_OUTPUTS = {
    "parameters": [
        {
            "name": USED,
            "value": USED,
            "description": IGNORED,
            "valueFrom": {"path": USED, "parameter": USED, "default": USED},
        }
    ],
    "artifacts": [_ARTIFACT],
}
_ARGUMENTS = {
    "parameters": [{"name": USED, "value": USED, "enum": IGNORED, "description": IGNORED}],
    "artifacts": [_ARTIFACT],
}
_CALL = {
    "name": USED,
    "template": USED,
    "arguments": _ARGUMENTS,
    "when": USED,
    "continueOn": {"failed": USED, "error": USED},
}
_RETRY_STRATEGY = {
    "limit": USED,
    "retryPolicy": USED,
    "expression": USED,
    "backoff": {"duration": USED, "factor": USED, "maxDuration": USED, "cap": USED},
    "affinity": IGNORED,
}
_SCHEDULING = dict.fromkeys(
    (
        "affinity",
        "automountServiceAccountToken",
        "executor",
        "hostAliases",
        "nodeSelector",
        "priorityClassName",
        "schedulerName",
        "securityContext",
        "serviceAccountName",
        "tolerations",
        "volumes",
        "metrics",
    ),
    IGNORED,
)
_ANY_TEMPLATE = {
    "name": USED,
    "inputs": _INPUTS,
    "outputs": _OUTPUTS,
    "metadata": {"annotations": USED, "labels": IGNORED},
    "retryStrategy": _RETRY_STRATEGY,
    "parallelism": USED,
    "archiveLocation": IGNORED,
    **_SCHEDULING,
}
_CONTAINER_TEMPLATE = {**_ANY_TEMPLATE, "container": _CONTAINER, "timeout": USED, "activeDeadlineSeconds": USED}
_DAG_TEMPLATE = {
    **_ANY_TEMPLATE,
    "dag": {"tasks": [{**_CALL, "depends": USED, "dependencies": USED}], "target": USED, "failFast": USED},
}
_STEPS_TEMPLATE = {**_ANY_TEMPLATE, "steps": [[_CALL]]}

_SPEC = {
    "entrypoint": USED,
    "arguments": _ARGUMENTS,
    "onExit": USED,
    "activeDeadlineSeconds": USED,
    "parallelism": USED,
    "archiveLogs": IGNORED,
    "artifactGC": IGNORED,
    "artifactRepositoryRef": IGNORED,
    "dnsConfig": IGNORED,
    "dnsPolicy": IGNORED,
    "hostNetwork": IGNORED,
    "imagePullSecrets": IGNORED,
    "podDisruptionBudget": IGNORED,
    "podGC": IGNORED,
    "podMetadata": IGNORED,
    "podPriorityClassName": IGNORED,
    "priority": IGNORED,
    "ttlStrategy": IGNORED,
    "volumeClaimGC": IGNORED,
    **_SCHEDULING,
}
_WORKFLOW = {"apiVersion": USED, "kind": USED, "metadata": IGNORED, "spec": _SPEC}


def unsupported(workflow: Mapping[str, Any]) -> list[str]:
    """Return every construct of a Workflow that the local engine does not have, each with where it stands."""
    found = list(_unknown(workflow, {**_WORKFLOW, "spec": {**_SPEC, "templates": IGNORED}, "status": IGNORED}, ""))
    kind = workflow.get("kind")
    if kind != "Workflow":
        found.insert(0, f"kind {kind!r} (the local engine runs objects of kind Workflow)")
    for template in as_list(as_map(workflow.get("spec")).get("templates")):
        name = template.get("name") if isinstance(template, Mapping) else None
        found.extend(_unknown(template, _shape_of(template), f"template {name!r}: "))
    return found


def as_map(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def _shape_of(template: Any) -> Shape:
    if "dag" in as_map(template):
        return _DAG_TEMPLATE
    return _STEPS_TEMPLATE if "steps" in as_map(template) else _CONTAINER_TEMPLATE


def _unknown(value: Any, shape: Shape, where: str) -> Iterator[str]:
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            yield f"{where.rstrip('. ') or 'workflow'} is not an object"
            return
        for key, item in value.items():
            # `sidecars: []` says nothing; `suspend: {}` says all that there is to say.
            if item is None or (item in ([], "", False) and key not in shape):
                continue
            if key not in shape:
                yield f"{where}{key}"
            elif shape[key] != IGNORED:
                yield from _unknown(item, shape[key], f"{where}{key}" if _plain(shape[key]) else f"{where}{key}.")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{where.rstrip('. ')} is not a list"
            return
        for index, item in enumerate(value):
            name = as_map(item).get("name", index)
            yield from _unknown(item, shape[0], f"{where.rstrip('.')}[{name}]" + ("." if not _plain(shape[0]) else ""))
    elif isinstance(value, str) and "{{=" in value:
        yield f"{where} has an expression tag {{{{=...}}}}"
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _unknown(item, USED, where)


def _plain(shape: Shape) -> bool:
    return not isinstance(shape, dict | list)

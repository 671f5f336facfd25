"""Workflows made from what is there: the same again, the one of a template; and whether two are the same one."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from orchestrator.engines.argo.api import GROUP, TEMPLATE_KINDS, Api
from orchestrator.engines.argo.nodes import name_of
from orchestrator.engines.argo.transport import NotFound
from orchestrator.engines.base import Workflow
from orchestrator.errors import UsageError

SIGNATURE = "foxrun.dev/submitted-sha256"
VERDICT = "foxrun.dev/verdict"
# Labels and annotations that Argo sets on what has run.
_OF_A_RUN = ("workflows.argoproj.io/", "kubectl.kubernetes.io/", SIGNATURE, VERDICT)
_KEPT = ("workflows.argoproj.io/title", "workflows.argoproj.io/description", "workflows.argoproj.io/workflow-template")


def signed(workflow: Workflow) -> Workflow:
    """The Workflow with a hash of itself among its annotations: clusters add to what they are given."""
    notes = workflow["metadata"].setdefault("annotations", {})
    notes[SIGNATURE] = _digest(workflow)
    return workflow


def is_same(there: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether the workflow that is there was submitted as the same one."""
    notes = (there.get("metadata") or {}).get("annotations") or {}
    if SIGNATURE in notes:
        return bool(notes[SIGNATURE] == sent["metadata"]["annotations"][SIGNATURE])
    return bool(there.get("spec") == sent.get("spec"))


def _digest(workflow: Mapping[str, Any]) -> str:
    metadata = copy.deepcopy(dict(workflow["metadata"]))
    metadata.get("annotations", {}).pop(SIGNATURE, None)
    text = json.dumps([metadata, workflow["spec"]], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def again(workflow: Mapping[str, Any]) -> Workflow:
    """What `argo resubmit` submits: the same spec under a new name that begins with the old one."""
    from workflows.names import name_prefix

    old = workflow["metadata"]
    spec = copy.deepcopy(dict(workflow["spec"]))
    spec.pop("shutdown", None)
    spec.pop("suspend", None)
    labels, notes = _kept(old.get("labels")), _kept(old.get("annotations"))
    labels["workflows.argoproj.io/resubmitted-from-workflow"] = name_of(workflow)[:63].rstrip("-.")
    notes.pop("foxrun.dev/name", None)
    metadata: dict[str, Any] = {
        "generateName": name_prefix(name_of(workflow)),
        "namespace": old.get("namespace"),
        "labels": labels,
        "annotations": notes,
    }
    return {"apiVersion": GROUP, "kind": "Workflow", "metadata": metadata, "spec": spec}


def _kept(entries: Mapping[str, str] | None) -> dict[str, str]:
    return {k: v for k, v in (entries or {}).items() if k in _KEPT or not k.startswith(_OF_A_RUN)}


def from_template(api: Api, reference: str, parameters: Mapping[str, str], *, name: str | None = None) -> Workflow:
    """The Workflow that `argo submit --from KIND/NAME` makes. Raises UsageError."""
    kind, _, template_name = reference.rpartition("/")
    kind = {"": "workflowtemplate", "wftmpl": "workflowtemplate", "cwft": "clusterworkflowtemplate",
            "cronwf": "cronworkflow"}.get(kind, kind)  # fmt: skip
    if kind not in TEMPLATE_KINDS or not template_name:
        raise UsageError(
            f"--from {reference!r} names no template", remedy="write workflowtemplate/NAME, or cronworkflow/NAME"
        )
    try:
        template = api.template(kind, template_name)
    except NotFound:
        raise UsageError(
            f"there is no {kind} {template_name!r} in {api.where}", remedy=f"kubectl get {TEMPLATE_KINDS[kind]}"
        ) from None
    is_cron = kind == "cronworkflow"
    spec = dict(template["spec"].get("workflowSpec") or {}) if is_cron else {}
    known = _parameters(spec or template["spec"])
    if set(parameters) - set(known) and (referred := spec.get("workflowTemplateRef")):
        known = list(dict.fromkeys([*known, *_of_reference(api, referred)]))
    strange = sorted(set(parameters) - set(known))
    if strange and known:
        raise UsageError(
            f"{kind} {template_name!r} has no parameter {', '.join(strange)}; it has {', '.join(known)}",
            remedy="give those with -p",
        )
    if not is_cron:
        reference_: dict[str, Any] = {"name": template_name}
        spec = {"workflowTemplateRef": reference_ | ({"clusterScope": True} if kind.startswith("cluster") else {})}
    spec = _with_arguments(spec, parameters)
    labels = dict((template["spec"].get("workflowMetadata") or {}).get("labels") or {}) if is_cron else {}
    label = {"workflowtemplate": "workflow-template", "clusterworkflowtemplate": "cluster-workflow-template",
             "cronworkflow": "cron-workflow"}[kind]  # fmt: skip
    labels[f"workflows.argoproj.io/{label}"] = template_name[:63]
    return {
        "apiVersion": GROUP,
        "kind": "Workflow",
        "metadata": {**_named(template_name, name), "labels": labels},
        "spec": spec,
    }


def _parameters(spec: Mapping[str, Any]) -> list[str]:
    return [str(p["name"]) for p in (spec.get("arguments") or {}).get("parameters") or []]


def _of_reference(api: Api, reference: Mapping[str, Any]) -> list[str]:
    """Parameters of the template that a CronWorkflow refers to; it sets some of them, and all may be given."""
    kind = "clusterworkflowtemplate" if reference.get("clusterScope") else "workflowtemplate"
    try:
        return _parameters(api.template(kind, str(reference.get("name") or ""))["spec"])
    except NotFound:
        return []


def _named(template: str, name: str | None) -> dict[str, str]:
    from workflows.names import name_prefix, workflow_name

    return {"name": workflow_name(name)} if name else {"generateName": name_prefix(template)}


def _with_arguments(spec: dict[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Parameters are strings, whatever they look like. Raises UsageError for what no pod could be given."""
    from workflows.values import JSON_LIMIT_BYTES

    for key, value in parameters.items():
        if (size := len(value.encode())) > JSON_LIMIT_BYTES:
            # Argo would say "argument list too long", or that it may not make a ConfigMap, when the pod is due.
            raise UsageError(
                f"parameter {key} takes {size} bytes, over {JSON_LIMIT_BYTES}: no argument of a process holds as much",
                remedy="put what is large into a file in the bucket, and give its key",
            )
        if "{{" in value:
            raise UsageError(
                f"parameter {key} contains '{{{{', which Argo takes for a template tag and cannot escape",
                remedy="put a space between the braces",
            )
    arguments = copy.deepcopy(dict(spec.get("arguments") or {}))
    there = {str(p["name"]): p for p in arguments.get("parameters") or []}
    for key, value in sorted(parameters.items()):
        there[key] = {"name": key, "value": str(value)}
    if there:
        arguments["parameters"] = list(there.values())
        spec = {**spec, "arguments": arguments}
    return spec

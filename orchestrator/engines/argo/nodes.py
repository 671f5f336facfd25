"""Argo's node status as plain data: unpacked where Argo packed it, and what Argo leaves to be computed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

from orchestrator.engines.base import COMPLETED_PHASES, Workflow
from orchestrator.errors import InfrastructureError

# Kubernetes' limit of 253 for a pod's name, less a dash and the ten digits of the hash.
_LONGEST_PREFIX = 253 - 10 - 1


def unpacked(workflow: Workflow) -> Workflow:
    """The workflow with `status.nodes` in place: above 1 MB Argo stores it gzipped, in `status.compressedNodes`.

    Whoever wrote which field (`managedFields`, often a third of the object) is dropped.

    Raises:
        InfrastructureError: the packed status cannot be read.
    """
    (workflow.get("metadata") or {}).pop("managedFields", None)
    status = workflow.get("status") or {}
    if packed := status.pop("compressedNodes", ""):
        try:
            status["nodes"] = json.loads(gzip.decompress(base64.b64decode(packed)))
        except (ValueError, OSError, EOFError) as error:
            raise InfrastructureError(
                f"the packed node status of {name_of(workflow)} cannot be read: {error}", remedy="argo get shows it"
            ) from None
    return workflow


def is_offloaded(workflow: Mapping[str, Any]) -> bool:
    """Whether Argo keeps the node status in its database, where only argo-server reads it."""
    status = workflow.get("status") or {}
    return bool(status.get("offloadNodeStatusVersion")) and not status.get("nodes")


def name_of(workflow: Mapping[str, Any]) -> str:
    """metadata.name."""
    return str((workflow.get("metadata") or {}).get("name", ""))


def version_of(workflow: Mapping[str, Any]) -> str:
    """metadata.resourceVersion."""
    return str((workflow.get("metadata") or {}).get("resourceVersion", ""))


def uid_of(workflow: Mapping[str, Any]) -> str:
    """metadata.uid."""
    return str((workflow.get("metadata") or {}).get("uid", ""))


def phase_of(workflow: Mapping[str, Any]) -> str:
    """Its phase; Pending before the controller has looked at it."""
    return str((workflow.get("status") or {}).get("phase") or "Pending")


def is_completed(workflow: Mapping[str, Any]) -> bool:
    """Whether it does not change any more."""
    return phase_of(workflow) in COMPLETED_PHASES


def pods(workflow: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The nodes that are pods, by id, in the order of their beginning."""
    nodes = (workflow.get("status") or {}).get("nodes") or {}
    found = [(node_id, node) for node_id, node in nodes.items() if node.get("type") == "Pod"]
    return dict(sorted(found, key=lambda item: (str(item[1].get("startedAt") or "9999"), item[0])))


def pod_name(workflow: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """The name of a node's pod; Argo does not store it (workflow/util/pod_name.go, version 2)."""
    notes = (workflow.get("metadata") or {}).get("annotations") or {}
    node_name, whole = str(node.get("name")), name_of(workflow)
    if notes.get("workflows.argoproj.io/pod-name-format") == "v1":
        return str(node.get("id"))
    if node_name == whole:
        return whole
    template = str((node.get("templateRef") or {}).get("template") or node.get("templateName") or "")
    prefix = whole if ".inline" in node_name else f"{whole}-{template}"
    return f"{prefix[:_LONGEST_PREFIX]}-{_fnv1a(node_name)}"


def _fnv1a(text: str) -> int:
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def means(node: Mapping[str, Any], wanted: str) -> bool:
    """Whether a person who says ``wanted`` means this node: by id, name, display name, or any attempt of it."""
    names = (str(node.get("id")), str(node.get("name")), str(node.get("displayName")))
    return wanted in names or any(name.startswith(f"{wanted}(") for name in names[1:])

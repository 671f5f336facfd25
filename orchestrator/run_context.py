"""Whose run it is: repository, branch, commit, kind, from whatever knows it (workflow, event, manifest, CI service)."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from foxrun import git
from orchestrator.alert_text import AlertContext
from orchestrator.compare.verdict import Verdict

PREFIX = "foxrun.dev/"


def of_workflow(workflow: Mapping[str, Any], *, url: str = "", report_url: str = "") -> AlertContext:
    """What a Workflow says of itself. ``url``, ``report_url``: the settings workflow_url and report_url."""
    metadata = workflow.get("metadata") or {}
    # What is not given is the template's.
    stored = (workflow.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
    given = {**_arguments(stored), **_arguments(workflow.get("spec") or {})}
    # A label is the text made legal: an annotation or an argument has the original.
    labels, known = _ours(metadata.get("labels")), _ours(metadata.get("annotations"))
    known = {**labels, **given, **known}
    kind, node = known.get("kind", ""), report_node(workflow)
    return AlertContext(
        workflow=str(metadata.get("name") or ""),
        # A commit against another says nothing of the branch alone.
        kind=f"{kind}-against" if known.get("against") else kind,
        origin="" if "worktree" in known else known.get("origin", ""),
        sha=commit(known.get("sha", "")),
        branch=known.get("branch", ""),
        seed=_number(known.get("seed", "")),
        mode=_number(known.get("mode", "")),
        started=str(metadata.get("creationTimestamp") or ""),
        author=known.get("author", ""),
        message=known.get("message", ""),
        link=(workflow_link(report_url, metadata, node=node) if node else "") or workflow_link(url, metadata),
    )


def commit(text: str) -> str:
    """A full hash as it is; of anything else, such as the branch of a night, nothing: its runs know their commit."""
    return text if git.is_commit(text) else ""


def workflow_link(url: str, metadata: Mapping[str, Any], *, node: str = "") -> str:
    """Where a person opens a workflow or its report: a setting with {name}, {namespace}, {uid}, {node} filled in.

    Empty where one that it asks for is not known.
    """
    for name, value in {"node": node, **{n: metadata.get(n) for n in ("name", "namespace", "uid")}}.items():
        if value:
            url = url.replace(f"{{{name}}}", str(value))
    return "" if "{" in url else url


def report_node(workflow: Mapping[str, Any]) -> str:
    """The node that wrote a workflow's last report; empty where there is none."""
    found = [
        (str(node.get("finishedAt") or ""), str(node_id))
        for node_id, node in ((workflow.get("status") or {}).get("nodes") or {}).items()
        for artifact in (node.get("outputs") or {}).get("artifacts") or []
        if artifact.get("name") == "report" and node.get("type") == "Pod"
    ]
    return max(found, default=("", ""))[1]


def of_event(text: str) -> AlertContext:
    """What the event that started a workflow said: its annotations below foxrun.dev, as base64 of JSON.

    So they travel: Argo and Kubernetes would read braces, quotes and dollars in them, and every character is allowed.
    """
    try:
        known = json.loads(base64.b64decode(text, validate=True))
    except ValueError:
        return AlertContext()
    if not isinstance(known, dict):
        return AlertContext()
    texts = {str(key).removeprefix("dev/"): value for key, value in known.items() if isinstance(value, str)}
    get = texts.get
    return AlertContext(
        origin=get("origin", ""), branch=get("branch", ""), author=get("author", ""), message=get("message", ""),
        sha=commit(get("sha", "")),
    )  # fmt: skip


def of_verdict(verdict: Verdict) -> AlertContext:
    """What the first run's manifest says of the code."""
    run = verdict.runs[0] if verdict.runs else None
    code = run.manifest.get("code") if run else None
    branch = str(code.get("branch") or "") if isinstance(code, dict) else ""
    return AlertContext(
        sha=run.commit if run else "",
        branch=branch,
        seed=run.seed if run else None,
        mode=run.mode if run else None,
    )


def merged(*contexts: AlertContext) -> AlertContext:
    """Each fact from the first that knows it."""
    found: dict[str, Any] = {}
    for context in contexts:
        for item in dataclasses.fields(context):
            value = getattr(context, item.name)
            if value != item.default:
                found.setdefault(item.name, value)
    return AlertContext(**found)


def _arguments(spec: Mapping[str, Any]) -> dict[str, str]:
    parameters = (spec.get("arguments") or {}).get("parameters") or []
    return {str(p.get("name")): str(p["value"]) for p in parameters if p.get("value")}


def _ours(notes: Mapping[str, Any] | None) -> dict[str, str]:
    return {key.removeprefix(PREFIX): str(text) for key, text in (notes or {}).items() if key.startswith(PREFIX)}


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None

"""Whose run it is: repository, branch, commit, kind, from whatever knows it (workflow, event, manifest, CI service)."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from orchestrator.alert_text import AlertContext
from orchestrator.compare.verdict import Verdict

PREFIX = "foxrun.dev/"


def of_workflow(workflow: Mapping[str, Any], *, url: str = "") -> AlertContext:
    """What a Workflow says of itself. ``url``: the setting workflow_url, with {name}, {namespace}, {uid}."""
    metadata = workflow.get("metadata") or {}
    arguments = (workflow.get("spec") or {}).get("arguments") or {}
    given = {str(p.get("name")): str(p.get("value") or "") for p in arguments.get("parameters") or []}
    notes = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    known = {key.removeprefix(PREFIX): str(text) for key, text in notes.items() if key.startswith(PREFIX)}
    kind = known.get("kind", "")
    return AlertContext(
        workflow=str(metadata.get("name") or ""),
        # A commit against another says nothing of the branch alone.
        kind=f"{kind}-against" if known.get("against") else kind,
        origin="" if "worktree" in known else known.get("origin", ""),
        sha=known.get("sha", "") or given.get("sha", ""),
        branch=known.get("branch", "") or given.get("branch", ""),
        seed=_number(known.get("seed") or given.get("seed", "")),
        mode=_number(known.get("mode") or given.get("mode", "")),
        started=str(metadata.get("creationTimestamp") or ""),
        author=known.get("author", ""),
        message=known.get("message", ""),
        link=workflow_link(url, metadata),
    )


def workflow_link(url: str, metadata: Mapping[str, Any]) -> str:
    """Where a person opens a workflow: the setting workflow_url with its names filled in."""
    for name in ("name", "namespace", "uid"):
        url = url.replace(f"{{{name}}}", str(metadata.get(name) or ""))
    return url


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
        sha=get("sha", ""),
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


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None

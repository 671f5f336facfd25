"""One workflow as `argo get` shows it: a head of facts, then its nodes as a tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from orchestrator.cli.live import MARKS
from orchestrator.cli.output import coloured
from orchestrator.compare.verdict import Verdict
from orchestrator.printable import printable

_LONGEST = 2**31


def head(workflow: Mapping[str, Any], verdict: Verdict | None) -> Iterator[list[str]]:
    """Facts as rows of two cells: title, name, status, verdict, times, what runs."""
    metadata, status = workflow["metadata"], workflow.get("status") or {}
    notes = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    phase = str(status.get("phase") or "Pending")
    facts = {
        "Name": metadata["name"],
        "Title": printable(str(notes.get("workflows.argoproj.io/title") or "")),
        "Event": printable(_event(notes)),
        "Status": coloured(phase),
        "Message": printable(str(status.get("message") or "")),
        "Verdict": f"{coloured(verdict.verdict)} (exit code {verdict.exit_code})" if verdict else None,
        "": printable(verdict.message) if verdict else None,
        "Next": printable(verdict.next) if verdict else None,
        "Created": _with_age(metadata.get("creationTimestamp")),
        "Started": _with_age(status.get("startedAt")),
        "Finished": _with_age(status.get("finishedAt")),
        "Duration": duration(status),
        "Progress": status.get("progress"),
        "Worktree": printable(str(notes.get("foxrun.dev/worktree") or "")),
    }
    for key, value in facts.items():
        if value:
            yield [f"{key}:" if key else "", str(value)]
    # Only the local engine is told where the commits are, and it runs no image.
    hidden = ("image", "against-image") if "foxrun.dev/repository" in notes else ()
    for parameter in (workflow["spec"].get("arguments") or {}).get("parameters") or []:
        if parameter["name"] in hidden:
            continue
        yield [f"  {parameter['name']}:", printable(str(parameter.get("value", "")))]
    for artifact in (workflow["spec"].get("arguments") or {}).get("artifacts") or []:
        yield [f"  {artifact['name']}:", printable(str((artifact.get("s3") or {}).get("key", "")))]


def _event(notes: Mapping[str, str]) -> str:
    """Whose push or pull request started it, where one did."""
    if "foxrun.dev/event" not in notes:
        return ""
    subject = str(notes.get("foxrun.dev/message") or "").partition("\n")[0]
    return f"{notes['foxrun.dev/event']} by {notes.get('foxrun.dev/author') or 'somebody'}: {subject}"


def nodes(workflow: Mapping[str, Any], *, wide: bool) -> Iterator[list[str]]:
    """The nodes as rows, children below their parents; a node with several parents once, below the last to end."""
    status = workflow.get("status") or {}
    known = _merged(status.get("nodes") or {})
    yield ["STEP", "TEMPLATE", "PODNAME" if wide else "PROGRESS", "DURATION", "MESSAGE"]
    roots = [i for i, node in known.items() if node.get("name") == workflow["metadata"]["name"]]
    roots += [i for i, node in known.items() if str(node.get("name")) == f"{workflow['metadata']['name']}.onExit"]
    for root in roots:
        yield from _below(known, root, "", "", wide)


def _below(
    known: Mapping[str, Mapping[str, Any]], node_id: str, lead: str, branch: str, wide: bool
) -> Iterator[list[str]]:
    node = known[node_id]
    phase = str(node.get("phase") or "Pending")
    name = str(node.get("displayName") or node.get("name"))
    third = (node_id if node.get("type") == "Pod" else "") if wide else str(node.get("progress") or "")
    yield [
        f"{lead}{branch}{coloured(phase, MARKS.get(phase, '?'))} {name}",
        str(node.get("templateName") or ""),
        third,
        duration(node),
        printable(" ".join(str(node.get("message") or "").split())),
    ]
    children = _children(known, node_id)
    lead += {"": "", "├─": "│ ", "└─": "  "}[branch]
    for position, child in enumerate(children):
        yield from _below(known, child, lead, "└─" if position == len(children) - 1 else "├─", wide)


def _merged(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A retry node and its only attempt as one, under the name of the first and with the facts of the second."""
    merged = {node_id: dict(node) for node_id, node in nodes.items()}
    for node_id, node in nodes.items():
        attempts = [child for child in node.get("children") or [] if child in nodes]
        if node.get("type") == "Retry" and len(attempts) == 1:
            only = merged.pop(attempts[0])
            only.update(displayName=node.get("displayName"), name=node.get("name"), boundaryID=node.get("boundaryID"))
            merged[node_id] = only
    return merged


def _children(known: Mapping[str, Mapping[str, Any]], node_id: str) -> list[str]:
    """What a node contains: tasks of a DAG (whatever their order of dependence), attempts of a retry."""
    within = [i for i, n in known.items() if n.get("boundaryID") == node_id and i != node_id]
    attempts = [i for i in known[node_id].get("children") or [] if i in known and known[node_id].get("type") == "Retry"]
    hidden = {child for i in within if known[i].get("type") == "Retry" for child in known[i].get("children") or []}
    chosen = attempts or [
        i for i in within if i not in hidden and known[i].get("type") not in ("StepGroup", "TaskGroup")
    ]
    return sorted(chosen, key=lambda i: (str(known[i].get("startedAt") or "9999"), str(known[i].get("displayName")), i))


def duration(status: Mapping[str, Any]) -> str:
    """How long it took or has taken."""
    if not status.get("startedAt"):
        return "-"
    end = _time(status["finishedAt"]) if status.get("finishedAt") else datetime.now(UTC)
    return span((end - _time(status["startedAt"])).total_seconds())


def age(workflow: Mapping[str, Any]) -> str:
    """How long ago it was created."""
    created = workflow["metadata"].get("creationTimestamp")
    return span((datetime.now(UTC) - _time(created)).total_seconds()) if created else "-"


def span(seconds: float) -> str:
    """Seconds as kubectl writes them: 12s, 3m40s, 5h2m, 4d3h."""
    whole = max(0, min(_LONGEST, int(seconds)))
    for size, unit, below, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{unit}" + (f"{rest}{smaller}" if rest else "")
    return f"{whole}s"


def _with_age(text: Any) -> str | None:
    if not text:
        return None
    return f"{text} ({span((datetime.now(UTC) - _time(text)).total_seconds())} ago)"


def _time(text: Any) -> datetime:
    return datetime.fromisoformat(str(text))


def outputs(workflow: Mapping[str, Any]) -> Iterator[list[str]]:
    """Output parameters of the parts, as rows."""
    for node in _merged((workflow.get("status") or {}).get("nodes") or {}).values():
        for parameter in (node.get("outputs") or {}).get("parameters") or []:
            value = parameter.get("value", "")
            text = value if isinstance(value, str) else json.dumps(value)
            yield [f"  {node.get('displayName')}.{parameter['name']}:", text]

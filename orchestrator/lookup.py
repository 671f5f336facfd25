"""Which workflow, or which part of one, a person means."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UsageError, WorkflowNotFound
from orchestrator.outcome import on_exit
from orchestrator.settings import did_you_mean

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine


ALERT = "alert"  # what a person sees of the exit handler


def full_name(engine: Engine, text: str) -> str:
    """The workflow that a person means: the name itself, ``@latest``, or the only one that begins like this.

    Raises:
        WorkflowNotFound: none, with the nearest name; UsageError: several.
    """
    from workflows.names import workflow_name

    if text and text != "@latest":
        # A whole name needs no list of what may be thousands.
        for exact in dict.fromkeys((text, workflow_name(text))):
            with contextlib.suppress(UsageError):
                return str(engine.get(exact)["metadata"]["name"])
    names = [str(item["metadata"]["name"]) for item in newest_first(engine.list({}))]
    if text == "@latest" and names:
        return names[0]
    starting = [name for name in names if name.startswith(text)] if text else []
    if len(starting) == 1:
        return starting[0]
    if starting:
        raise UsageError(f"{text!r} begins {len(starting)} names: {', '.join(starting[:5])}", remedy="give more of it")
    there = "; one of a cluster: the same with --engine argo" if engine.name == "local" else ""
    raise WorkflowNotFound(
        f"there is no workflow {text!r}{did_you_mean(text, names)}", remedy=f"foxrun list shows all{there}"
    )


def node_of(engine: Engine, name: str, text: str) -> str:
    """A part of a workflow by its name or id, started or not. Raises UsageError with the names that there are."""
    workflow = engine.get(name)
    nodes = (workflow.get("status") or {}).get("nodes") or {}
    known = {str(node.get("displayName")) for node in nodes.values() if node.get("type") == "Pod" and not on_exit(node)}
    known |= {full.split("(")[0] for full in known}  # leg-a means leg-a(0)
    for template in workflow["spec"].get("templates") or []:
        known |= {str(task["name"]) for task in (template.get("dag") or {}).get("tasks") or []}
    handlers = [str(node_id) for node_id, node in nodes.items() if node.get("type") == "Pod" and on_exit(node)]
    if text == ALERT and handlers:
        return handlers[-1]
    known |= {ALERT} if handlers else set()
    if text not in nodes and text not in known:
        there = ", ".join(sorted(name for name in known if not name.endswith(")")))
        raise UsageError(f"workflow {name} has no part {text!r}; it has {there}", remedy=f"foxrun get {name}")
    return text


def newest_first(workflows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Workflows by the time of their creation, then by name."""
    return sorted(
        workflows,
        key=lambda w: (str(w["metadata"].get("creationTimestamp") or ""), str(w["metadata"].get("name") or "")),
        reverse=True,
    )

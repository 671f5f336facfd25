"""What the exit handler knows, made into a verdict, and told to the alert channels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import alerts
from orchestrator.alerts import AlertContext
from orchestrator.compare import verdict as v
from orchestrator.compare.text import count
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import FoxrunError
from orchestrator.outcome import outcome

if TYPE_CHECKING:
    from orchestrator.engines.local import LocalEngine


def verdict_at_exit(verdict_file: Path | None, *, workflow: str, status: str, failures: str) -> Verdict:
    """The verdict of a workflow that is about to end; `succeeded` when nothing was compared.

    Args:
        verdict_file: what gate or compare wrote last, where one did.
        workflow: its name.
        status: its phase so far.
        failures: Argo's JSON list of failed nodes; they have no exit code but for their message.
    """
    from foxrun.jsonio import loads
    from foxrun.problems import ContractError

    written: dict[str, Any] = {}
    if verdict_file is not None and verdict_file.is_file():
        try:
            value = loads(verdict_file.read_bytes(), name=str(verdict_file))
        except (OSError, ContractError) as error:
            value = str(error)
        role = "gate" if isinstance(value, dict) and value.get("subject") == "gate" else "compare"
        written[role] = value
    if status == "Succeeded" and not written:
        return v.make(v.SUCCEEDED, f"workflow {workflow} succeeded; nothing was compared", subject="train")
    return outcome(
        {
            "metadata": {"name": workflow},
            "status": {"phase": status if status in ("Succeeded", "Failed") else "Error", "nodes": _nodes(failures)},
        },
        written,
    )


def _nodes(failures: str) -> dict[str, dict[str, Any]]:
    try:
        items = json.loads(failures or "[]")
        if isinstance(items, str):  # Argo quotes the list once more, since it is the value of a parameter
            items = json.loads(items)
    except ValueError:
        return {}
    failed = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    names = {str(item.get("displayName")) for item in failed}
    nodes = {}
    for number, item in enumerate(failed):
        # The DAG fails because a part did, and leg-a because its last attempt, leg-a(0), did.
        retried = any(name.startswith(f"{item.get('displayName')}(") for name in names)
        if retried or item.get("templateName") in ("main", None):
            continue
        code = re.search(r"exit code (\d+)", str(item.get("message") or ""))
        outputs = {"exitCode": code[1]} if code else {}
        nodes[str(number)] = {**item, "type": "Pod", "name": str(item.get("displayName")), "outputs": outputs}
    return nodes


def announce(
    verdict_file: Path | None,
    *,
    workflow: str,
    status: str,
    failures: str,
    urls: Sequence[str],
    always: bool,
    engine: LocalEngine | None = None,
    reports: Path | None = None,
) -> Iterator[str]:
    """Tell the channels; yields lines that say what was told and what failed, without secrets.

    Args:
        verdict_file, workflow, status, failures: as of ``verdict_at_exit``.
        urls: apprise URLs.
        always: also tell good news.
        engine: the local engine, which knows more of the workflow than its exit handler is told.
        reports: where its report is written, to be named in the alert.
    """
    verdict, link = None, ""
    if engine is not None and reports is not None:
        verdict, link = _with_report(engine, workflow, status, reports)
    verdict = verdict or verdict_at_exit(verdict_file, workflow=workflow, status=status, failures=failures)
    if verdict.exit_code == 0 and not always:
        yield f"no alert: {verdict.verdict}"
        return
    if not urls:
        yield "no alert: no channel is set (FOXRUN_ALERTS, or alerts in foxrun.yaml)"
        return
    failed = alerts.send(verdict, urls, context=_context(verdict, workflow, link), quiet=())
    yield from (str(failure) for failure in failed)
    told = len(set(urls)) - len(failed)
    if told:
        yield f"alert sent to {told} of {count(len(set(urls)), 'channel')}: {verdict.verdict}"


def _with_report(engine: LocalEngine, workflow: str, status: str, reports: Path) -> tuple[Verdict | None, str]:
    """The verdict of the workflow whose exit handler this is, and its report, so that the alert can lead there."""
    from orchestrator.following import judge, write_report

    try:
        found = engine.get(workflow)
        verdict = judge(engine, {**found, "status": {**found["status"], "phase": status}})
        return verdict, str(write_report(verdict, reports / f"{workflow}.html"))
    except (FoxrunError, OSError, ValueError):  # not of this engine, or no room: the alert goes out all the same
        return None, ""


def _context(verdict: Verdict, workflow: str, link: str) -> AlertContext:
    """What the first run's manifest says of the code."""
    run = verdict.runs[0] if verdict.runs else None
    code = run.manifest.get("code") if run else None
    branch = str(code.get("branch") or "") if isinstance(code, dict) else ""
    return AlertContext(
        workflow=workflow,
        sha=run.commit if run else "",
        branch=branch,
        seed=run.seed if run else None,
        mode=run.mode if run else None,
        link=link,
    )

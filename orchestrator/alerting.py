"""What the exit handler knows, made into a verdict, and told to the commit's host and the alert channels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import alerts
from orchestrator.alert_delivery import Clock, deliver, now_utc, queue, undelivered
from orchestrator.alert_episodes import RunFacts, State, Wanted, empty, wanted
from orchestrator.alert_rules import BAD, GOOD, Rule
from orchestrator.alert_state import AlertState
from orchestrator.alert_text import PAYLOAD_VERSION
from orchestrator.alerts import AlertContext
from orchestrator.compare import verdict as v
from orchestrator.compare.text import count
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import FoxrunError
from orchestrator.outcome import outcome
from orchestrator.run_context import of_workflow

if TYPE_CHECKING:
    from orchestrator.engines.local import LocalEngine

NO_CHANNEL = "no alert: no channel is set (FOXRUN_ALERTS, or alerts in foxrun.yaml)"


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


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Who hears of what, from the settings."""

    channels: Mapping[str, str]  # name -> URL
    rules: Sequence[Rule]
    state: AlertState
    status_kinds: Sequence[str] = ()
    host_api: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


def announce(verdict: Verdict, context: AlertContext, policy: Policy, *, always: bool = False) -> Iterator[str]:
    """Tell the commit's host and the channels; yields lines that say what was told and what failed, without secrets.

    Args:
        verdict, context: what came of which run.
        policy: who is to hear of it.
        always: tell all channels, whatever the rules say.
    """
    yield from _host_lines(verdict, context, policy)
    if not policy.channels:
        yield f"no alert: {verdict.verdict}" if verdict.exit_code == 0 else NO_CHANNEL
        return
    yield from tell_channels(verdict, context, policy, always=always)


def tell_channels(
    verdict: Verdict, context: AlertContext, policy: Policy, *, always: bool = False, clock: Clock = now_utc,
    **effort: Any,
) -> Iterator[str]:  # fmt: skip
    """Put what the rules want into the outbox, and deliver what is due. ``effort``: as of ``deliver``."""
    run = RunFacts(
        origin=context.origin, branch=context.branch, kind=context.kind, workflow=context.workflow, sha=context.sha,
        started=context.started or _text(clock()), verdict=verdict.verdict, exit_code=verdict.exit_code,
    )  # fmt: skip
    rules = [*policy.rules, *([Rule(verdicts=GOOD | BAD, repeat=True)] if always else [])]
    channels = list(policy.channels)

    def remember(state: State) -> tuple[list[Wanted], str]:
        wants, why = wanted(state, run, rules, channels, clock())
        for want in wants:
            about = replace(
                context, event=want.event, since=want.since, commits=want.commits,
                undelivered=tuple(undelivered(state, clock())),
            )  # fmt: skip
            queue(state, alerts.message_of(verdict, about), want, workflow=context.workflow, now=clock())
        return wants, why

    try:
        wants, why = policy.state.change(remember)
        missing = sorted({want.channel for want in wants} - set(channels))
        yield from (f"no channel is called {name} here: its message waits (alerts in foxrun.yaml)" for name in missing)
        for want in wants:
            if want.due > clock():
                later = "by the next run, or foxrun alert --flush"
                yield f"quiet hours: {want.channel} is told after {_text(want.due)}, {later}"
        if not wants:
            yield f"no alert: {why or verdict.verdict}"
        yield from deliver(policy.state, policy.channels, clock=clock, **effort)
        yield from undelivered(policy.state.read(), clock())
    except FoxrunError as error:
        # Rather told once too often than not at all.
        yield f"alerts cannot remember what was told: {error}" + (f" ({error.remedy})" if error.remedy else "")
        wants, _ = wanted(empty(), run, rules, channels, clock())
        urls = [policy.channels[want.channel] for want in wants if want.channel in policy.channels]
        failed = alerts.send(verdict, urls, context=context, quiet=())
        yield from (str(failure) for failure in failed)
        if told := len(set(urls)) - len(failed):
            yield f"alert sent to {told} of {count(len(set(urls)), 'channel')}: {verdict.verdict}"


def _host_lines(verdict: Verdict, context: AlertContext, policy: Policy) -> Iterator[str]:
    """The status and the comment, for the kinds that have them, where there is a token."""
    from orchestrator import statuses

    if not policy.environ.get(statuses.TOKEN) or not context.origin or context.kind not in policy.status_kinds:
        return
    try:
        answer = statuses.tell(verdict, context, api=policy.host_api, environ=policy.environ)
    except FoxrunError as error:
        yield f"status not written: {error}" + (f" ({error.remedy})" if error.remedy else "")
        return
    except Exception as error:  # whatever a host answers, the channels are told
        yield f"status not written: {type(error).__name__}"
        return
    yield from answer.done
    yield from answer.failed


def test_channels(channels: Mapping[str, str], **effort: Any) -> Iterator[tuple[str, str]]:
    """Send each channel a test message; (name, what went wrong, or nothing) as they are in the settings."""
    message = alerts.Message(
        title="foxrun: test", body="This is a test of `foxrun alert --test`; nothing has happened.",
        fields={"version": PAYLOAD_VERSION, "event": "test"}, good=True,
    )  # fmt: skip
    results = alerts.send_all({url: [message] for url in channels.values()}, **effort)
    for name, url in channels.items():
        [failure] = results[url]
        yield name, "" if failure is None else str(failure)


def with_report(engine: LocalEngine, workflow: str, status: str, reports: Path) -> tuple[Verdict, AlertContext] | None:
    """The verdict of the workflow whose exit handler this is, and its report, so that the alert can lead there."""
    from orchestrator.following import judge, write_report

    try:
        found = engine.get(workflow)
        verdict = judge(engine, {**found, "status": {**found["status"], "phase": status}})
        link = str(write_report(verdict, reports / f"{workflow}.html"))
        return verdict, replace(of_workflow(found), link=link)
    except (FoxrunError, OSError, ValueError):  # not of this engine, or no room: the alert goes out all the same
        return None


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

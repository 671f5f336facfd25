"""From the settings to who hears of what: the use cases of the exit handler, of `alert --flush` and of `get`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foxrun import git
from orchestrator import alerting, alerts, run_context
from orchestrator.alert_delivery import deliver, next_due, now_utc, story, undelivered
from orchestrator.alert_rules import channels_of, parse_rules
from orchestrator.alert_state import AlertState, ClusterState, FileState
from orchestrator.alert_text import AlertContext
from orchestrator.alerting import Policy
from orchestrator.compare import verdict as v
from orchestrator.compare.text import count
from orchestrator.errors import FoxrunError
from orchestrator.runnable import outside
from orchestrator.settings import Settings, home_directory

if TYPE_CHECKING:
    from orchestrator.compare.verdict import Verdict
    from orchestrator.engines.local import LocalEngine

LONGEST_WAIT = timedelta(days=3)
PAUSE_S, LONGEST_PAUSE_S = 30.0, 600.0


def at_exit(
    settings: Settings, environ: Mapping[str, str], *, engine: LocalEngine | None, urls: Sequence[str],
    verdict_file: Path | None, workflow: str, status: str, failures: str, kind: str, sha: str, branch: str,
    origin: str, started: str, link: str, always: bool, uid: str = "", history: Path | None = None,
) -> Iterator[str]:  # fmt: skip
    """Tell whoever is to be told of a workflow that is about to end; yields lines for its log.

    Args:
        settings, environ: channels, rules, tokens.
        engine: the local one, where it may be its workflow.
        urls: tell these alone, at once, and remember nothing.
        verdict_file, workflow, status, failures: as of ``alerting.verdict_at_exit``.
        kind, sha, branch, origin, started, link: what is known of the run; of a night, ``sha`` is its branch.
        always: tell all channels, whatever the rules say.
        uid, history: where the entry of the history is written, and whose it is.
    """
    known = alerting.with_report(engine, workflow, status, home_directory(settings) / "reports") if engine else None
    if known is not None:
        verdict, context = known
    else:
        verdict = alerting.verdict_at_exit(verdict_file, workflow=workflow, status=status, failures=failures)
        context = AlertContext()
        # What is told leaves the pod: the workflow is known by its name there, and its runs are not where they were.
        verdict = dataclasses.replace(verdict, next=outside(verdict.next, workflow))
    facts = {"name": workflow, "namespace": settings.namespace, "uid": uid}
    if known is None and (node := _node_of(verdict_file)) is not None:
        link = link or run_context.workflow_link(settings.report_url, facts, node=node)
    link = link or run_context.workflow_link(settings.workflow_url, facts)
    told = AlertContext(
        workflow=workflow, kind=kind, sha=run_context.commit(sha), branch=branch, origin=origin, started=started,
        link=link,
    )  # fmt: skip
    event = run_context.of_event(environ.get("FOXRUN_EVENT", ""))
    context = run_context.merged(event, told, context, run_context.of_verdict(verdict))
    if sha and not context.sha:  # the name of a branch, and no run that says what it was: what this pod is made of
        context = dataclasses.replace(context, sha=git.commit_run(Path.cwd()))
    if history is not None:
        yield from _remember(history, uid, verdict, context)
    if urls:
        return (yield from _directly(urls, verdict, context, always=always))
    policy = policy_of(
        settings, environ, local=known is not None or not (_in_cluster(environ) or settings.engine == "argo")
    )
    yield from alerting.announce(verdict, context, policy, always=always)


def _node_of(verdict_file: Path | None) -> str | None:
    """The node that wrote the verdict and the report beside it; empty where it did not say; None without a verdict."""
    from foxrun.jsonio import loads
    from foxrun.problems import ContractError

    try:
        value = loads(verdict_file.read_bytes(), name="") if verdict_file is not None else None
    except (OSError, ContractError):
        return None
    return str(value.get(v.NODE) or "") if isinstance(value, dict) else None


def _remember(file: Path, uid: str, verdict: Verdict, context: AlertContext) -> Iterator[str]:
    """Write the entry of the history; a disk that refuses changes no verdict."""
    from foxrun.files import write_atomic
    from orchestrator.history.entries import entry_of, to_text

    entry = entry_of(
        verdict,
        name=context.workflow,
        uid=uid,
        finished=now_utc().strftime("%Y-%m-%dT%H:%M:%SZ"),
        kind=context.kind,
        branch=context.branch,
        sha=context.sha,
    )
    entry = dataclasses.replace(entry, report=context.link)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, to_text(entry))
    except OSError as error:
        yield f"no entry in the history: {error.strerror}: {file}"


def policy_of(settings: Settings, environ: Mapping[str, str], *, local: bool) -> Policy:
    """Who hears of what. ``local``: of the local engine's workflows."""
    return Policy(
        channels=channels_of(settings.alerts),
        rules=parse_rules(settings.alert_rules),
        state=state_of(settings, local=local),
        status_kinds=settings.status_kinds,
        host_api=settings.host_api,
        environ=environ,
    )


def state_of(settings: Settings, *, local: bool) -> AlertState:
    """Where it is remembered what was told."""
    if local:
        return FileState(home_directory(settings))
    from orchestrator.engines.argo.credentials import KubeCredentials

    kube = KubeCredentials(kubeconfig=settings.kubeconfig, context=settings.context, namespace=settings.namespace)
    return ClusterState(kube, settings.alert_state)


def flush(settings: Settings, environ: Mapping[str, str], *, wait: bool) -> Iterator[str]:
    """Send what is due; with ``wait`` go on until nothing waits, or for LONGEST_WAIT."""
    local = settings.engine == "local" and not _in_cluster(environ)
    store, channels = state_of(settings, local=local), channels_of(settings.alerts)
    end, pause = now_utc() + LONGEST_WAIT, PAUSE_S
    while True:
        lines = deliver(store, channels)
        yield from lines
        state = store.read()
        due = next_due(state)
        if due is None or not wait or now_utc() > end:
            break
        later = (due - now_utc()).total_seconds()
        pause = PAUSE_S if lines and later > 0 else min(2 * pause, LONGEST_PAUSE_S)
        time.sleep(max(1.0, min(later, LONGEST_PAUSE_S)) if later > 0 else pause)
    yield from undelivered(state, now_utc())
    if state["outbox"]:
        yield f"{count(len(state['outbox']), 'message')} wait, the next until {state['outbox'][0]['due']}"
    elif not lines:
        yield "nothing waits"


def told(settings: Settings, workflow: str) -> list[str]:
    """What became of the alerts of a workflow, a line a channel; nothing where that cannot be read."""
    try:
        return story(state_of(settings, local=settings.engine == "local").read(), workflow)
    except FoxrunError:
        return []


def _directly(urls: Sequence[str], verdict: Any, context: AlertContext, *, always: bool) -> Iterator[str]:
    if verdict.exit_code == 0 and not always:
        yield f"no alert: {verdict.verdict}"
        return
    channels = list(channels_of(urls).values())
    context = dataclasses.replace(context, event="news" if verdict.exit_code == 0 else "broken")
    failed = alerts.send(verdict, channels, context=context, quiet=())
    yield from (str(failure) for failure in failed)
    if reached := len(channels) - len(failed):
        yield f"alert sent to {reached} of {count(len(channels), 'channel')}: {verdict.verdict}"


def _in_cluster(environ: Mapping[str, str]) -> bool:
    """Whether we run in a pod of a cluster's workflow, and not in one that the local engine started in some pod."""
    return "KUBERNETES_SERVICE_HOST" in environ and "FOXRUN_TERMINATION_LOG" not in environ

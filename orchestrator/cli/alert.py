"""``foxrun alert``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from orchestrator.cli import options


@click.command("alert")
@click.option("--verdict", "verdict_file", type=click.Path(path_type=Path), help="verdict.json; it may be absent.")
@click.option("--workflow", default="", help="Name of the workflow.")
@click.option("--status", default="", help="Its phase: Succeeded, Failed or Error.")
@click.option("--failures", default="", help="What failed, as Argo's JSON ({{workflow.failures}}).")
@click.option("--kind", default="", help="Its kind: ci-gate, nightly, regression-pair, ...")
@click.option("--sha", default="", help="The commit that ran.")
@click.option("--branch", envvar="FOXRUN_BRANCH", default="", help="Its branch.  [variable FOXRUN_BRANCH]")
@click.option("--origin", default="", help="Address of its repository: https://HOST/OWNER/NAME.")
@click.option("--started", default="", help="When the workflow was created, as 2026-01-31T12:00:00Z.")
@click.option("--link", default="", help="Where people open the workflow.")
@click.option("--uid", default="", help="The workflow's UID, by which the history knows it.")
@click.option("--history", type=click.Path(path_type=Path), help="Write the workflow's entry of the history here.")
@click.option("--always", is_flag=True, help="Tell all channels, whatever the rules say: good news too.")
@click.option("--to", "urls", multiple=True, metavar="URL", help="An apprise URL, in place of settings and rules.")
@click.option("--flush", is_flag=True, help="Only send what waits: quiet hours that are over, channels that were dead.")
@click.option("--wait", is_flag=True, help="With --flush: stay until nothing waits any more.")
@click.option("--test", is_flag=True, help="Send each channel a test message and say which work.")
def command(urls: tuple[str, ...], flush: bool, wait: bool, test: bool, **facts: Any) -> None:
    """Tell the alert channels what a workflow came to (the exit handler calls this).

    Where FOXRUN_HOST_TOKEN is set, the commit's status and comment are written too (foxrun status --help). Exits with 0
    whatever happens: a failing alert never changes a verdict. Channels are apprise URLs in FOXRUN_ALERTS or
    foxrun.yaml; rules there say who hears of what. Failures are printed with the URL masked. --test alone exits with 6
    when a channel does not work.

    \b
    foxrun alert --test
    foxrun alert --flush
    foxrun alert --verdict verdict.json --workflow NAME --status Failed --to json://localhost:8080
    """
    from orchestrator import alerting, policies
    from orchestrator.alert_rules import channels_of

    if wait and not flush:
        raise click.UsageError("--wait belongs to --flush")
    if not test and not flush:
        return _at_exit(urls, facts)
    settings = options.current()
    if flush:
        for line in policies.flush(settings, os.environ, wait=wait):
            click.echo(line)
        return None
    channels = channels_of(urls or settings.alerts)
    results = list(alerting.test_channels(channels))
    for name, problem in results:
        click.echo(f"{name}: {problem or 'told'}")
    if not channels:
        click.echo(alerting.NO_CHANNEL.removeprefix("no alert: "))
    if any(problem for _, problem in results):
        raise click.exceptions.Exit(6)
    return None


def _at_exit(urls: tuple[str, ...], facts: dict[str, Any]) -> None:
    """As the exit handler: whatever goes wrong is said, since a handler that fails would fail its Workflow."""
    from orchestrator import policies
    from orchestrator.cli.main import masked
    from orchestrator.errors import FoxrunError
    from orchestrator.settings import load_settings

    try:
        settings = options.current()
    except FoxrunError as error:
        click.echo(f"settings are left out: {error}" + (f" ({error.remedy})" if error.remedy else ""))
        kept = {name: os.environ[name] for name in ("FOXRUN_ALERTS", "FOXRUN_HOME") if name in os.environ}
        settings = load_settings(Path(os.sep), kept)
    try:
        engine = _local(settings, facts["workflow"])
        for line in policies.at_exit(settings, os.environ, engine=engine, urls=urls, **facts):
            click.echo(line)
    except Exception as error:
        click.echo(f"the alert failed: {type(error).__name__}: {masked(' '.join(str(error).split()))}")


def _local(settings: Any, workflow: str) -> Any:
    """The local engine, which knows more of its workflow than the exit handler is told."""
    from orchestrator.engines.local import LocalEngine

    there = options.engine_of(settings) if settings.engine == "local" and workflow else None
    return there if isinstance(there, LocalEngine) else None

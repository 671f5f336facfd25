"""``foxrun alert``."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import options


@click.command("alert")
@click.option("--verdict", "verdict_file", type=click.Path(path_type=Path), help="verdict.json; it may be absent.")
@click.option("--workflow", default="", help="Name of the workflow.")
@click.option("--status", default="", help="Its phase: Succeeded, Failed or Error.")
@click.option("--failures", default="", help="What failed, as Argo's JSON ({{workflow.failures}}).")
@click.option("--always", is_flag=True, help="Also tell good news.")
@click.option("--to", "urls", multiple=True, metavar="URL", help="An apprise URL, in place of the setting alerts.")
def command(
    verdict_file: Path | None, workflow: str, status: str, failures: str, always: bool, urls: tuple[str, ...]
) -> None:
    """Tell the alert channels what a workflow came to (the exit handler calls this).

    Exits with 0 whatever happens: a failing alert never changes a verdict. Channels are apprise URLs in FOXRUN_ALERTS
    or foxrun.yaml; failures are printed with the URL masked.

    \b
    foxrun alert --verdict verdict.json --workflow NAME --status Failed --to json://localhost:8080
    """
    from orchestrator.alerting import announce
    from orchestrator.engines.local import LocalEngine
    from orchestrator.settings import home_directory

    settings = options.current()
    there = options.engine_of(settings) if settings.engine == "local" and workflow else None
    for line in announce(
        verdict_file,
        workflow=workflow,
        status=status,
        failures=failures,
        urls=urls or settings.alerts,
        always=always,
        engine=there if isinstance(there, LocalEngine) else None,
        reports=home_directory(settings) / "reports",
    ):
        click.echo(line)

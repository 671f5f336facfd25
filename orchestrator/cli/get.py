"""``foxrun get``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import options

if TYPE_CHECKING:
    from orchestrator.settings import Settings


@click.command("get")
@options.NAME
@options.output("json", "yaml", "wide", "name")
def command(name: str, fmt: str | None) -> None:
    """Show one workflow as a tree of its parts.

    NAME is a workflow, the beginning of its name, or @latest.

    \b
    foxrun get @latest
    foxrun get regression-pair-1a2b3c4-x7k2p -o json
    """
    from orchestrator.cli import tree
    from orchestrator.cli.output import print_json, print_yaml, table
    from orchestrator.following import judge
    from orchestrator.lookup import full_name
    from orchestrator.outcome import is_completed

    settings = options.current()
    engine = options.engine_of(settings)
    workflow = engine.get(full_name(engine, name))
    if fmt == "json":
        return print_json(workflow)
    if fmt == "yaml":
        return print_yaml(workflow)
    if fmt == "name":
        return click.echo(workflow["metadata"]["name"])
    verdict = judge(engine, workflow) if is_completed(workflow) else None
    table([*tree.head(workflow, verdict), *(_alerts(settings, workflow) if verdict is not None else [])])
    if outputs := list(tree.outputs(workflow)):
        click.echo("Outputs:")
        table(outputs)
    click.echo()
    return table(tree.nodes(workflow, wide=fmt == "wide"))


def _alerts(settings: Settings, workflow: Mapping[str, Any]) -> list[list[str]]:
    """What was told to whom, and above all who could not be told."""
    from orchestrator.policies import told

    lines = told(settings, str(workflow["metadata"]["name"]))
    return [["" if number else "Alerts:", line] for number, line in enumerate(lines)]

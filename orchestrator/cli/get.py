"""``foxrun get``."""

from __future__ import annotations

import click

from orchestrator.cli import options


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

    engine = options.engine_of(options.current())
    workflow = engine.get(full_name(engine, name))
    if fmt == "json":
        return print_json(workflow)
    if fmt == "yaml":
        return print_yaml(workflow)
    if fmt == "name":
        return click.echo(workflow["metadata"]["name"])
    verdict = judge(engine, workflow) if is_completed(workflow) else None
    table(tree.head(workflow, verdict))
    if outputs := list(tree.outputs(workflow)):
        click.echo("Outputs:")
        table(outputs)
    click.echo()
    return table(tree.nodes(workflow, wide=fmt == "wide"))

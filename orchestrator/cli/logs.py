"""``foxrun logs``."""

from __future__ import annotations

import click

from orchestrator.cli import options


@click.command("logs")
@options.NAME
@click.option("-f", "--follow", is_flag=True, help="Go on until the workflow is completed.")
@click.option("--node", help="Only this part: gate, leg-a, leg-b, train, compare, ...")
@options.output("json", help="One JSON object a line.")
def command(name: str, follow: bool, node: str | None, fmt: str | None) -> None:
    """Print what the parts of a workflow wrote.

    NAME is a workflow, the beginning of its name, or @latest. Each line begins with the part that wrote it.

    \b
    foxrun logs @latest -f
    foxrun logs @latest --node leg-a
    """
    from orchestrator.cli import live
    from orchestrator.cli.follow import print_logs
    from orchestrator.lookup import full_name, node_of

    engine = options.engine_of(options.current())
    found = full_name(engine, name)
    wanted = node_of(engine, found, node) if node is not None else None
    with live.coming_back(found):
        print_logs(engine, found, node=wanted, follow=follow, as_json=fmt == "json")

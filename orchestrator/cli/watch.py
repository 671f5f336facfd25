"""``foxrun watch``."""

from __future__ import annotations

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration


@click.command("watch")
@options.NAME
@click.option("--deadline", type=Duration(), help="Stop following after this time; the workflow goes on.")
@options.output("json", help="Print the verdict so.")
def command(name: str, deadline: float | None, fmt: str | None) -> None:
    """Follow a workflow to its end, and exit with its verdict.

    NAME is a workflow, the beginning of its name, or @latest. Ctrl-C ends the following only.

    \b
    foxrun watch @latest
    """
    from orchestrator.cli.follow import follow_and_print
    from orchestrator.lookup import full_name

    settings = options.current(deadline=deadline)
    engine = options.engine_of(settings)
    follow_and_print(engine, full_name(engine, name), settings=settings, how="watch", fmt=fmt)

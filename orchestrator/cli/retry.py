"""``foxrun retry``."""

from __future__ import annotations

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration


@click.command("retry")
@options.NAME
@click.option("--detach", is_flag=True, help="Do not follow.")
@click.option("--deadline", type=Duration(), help="Stop following after this time; the workflow goes on.")
@options.output("json", "name", help="Print the verdict (--detach: the name) so.")
def command(name: str, detach: bool, deadline: float | None, fmt: str | None) -> None:
    """Run the failed parts of a workflow again, and follow it.

    NAME is a workflow, the beginning of its name, or @latest. What succeeded is kept; so a run that was killed goes on.

    \b
    foxrun retry @latest
    """
    from orchestrator.cli.follow import follow_and_print
    from orchestrator.following import retry
    from orchestrator.lookup import full_name

    settings = options.current(deadline=deadline)
    engine = options.engine_of(settings)
    again = retry(engine, full_name(engine, name))
    if detach:
        click.echo(again)
        return
    follow_and_print(engine, again, settings=settings, how="watch", fmt=fmt)

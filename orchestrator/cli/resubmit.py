"""``foxrun resubmit``."""

from __future__ import annotations

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration


@click.command("resubmit")
@options.NAME
@click.option("--watch", "how", flag_value="watch", help="Follow with live progress (the local engine's default).")
@click.option("--wait", "how", flag_value="wait", help="Follow silently.")
@click.option("--log", "how", flag_value="log", help="Follow by printing what the parts write.")
@click.option("--detach", "how", flag_value="detach", help="Do not follow (a cluster's default).")
@click.option("--deadline", type=Duration(), help="Stop following after this time; the workflow goes on.")
@options.output("json", "yaml", "name", help="Print the verdict (--detach: the Workflow) so.")
def command(name: str, how: str | None, deadline: float | None, fmt: str | None) -> None:
    """Run a workflow anew from its beginning, under a new name.

    NAME is a workflow, the beginning of its name, or @latest. `foxrun retry` keeps what succeeded instead.

    \b
    foxrun resubmit @latest
    """
    from orchestrator.cli.submit import go_on
    from orchestrator.lookup import full_name
    from orchestrator.submission import resubmit

    settings = options.current(deadline=deadline)
    engine = options.engine_of(settings)
    go_on(engine, resubmit(engine, full_name(engine, name)), settings=settings, how=how, fmt=fmt)

"""``foxrun terminate``."""

from __future__ import annotations

import click

from orchestrator.cli import options


@click.command("terminate")
@options.NAMES
@click.option("--all", "everything", is_flag=True, help="Every workflow that runs.")
@click.option("-l", "--selector", "labels", multiple=True, metavar="KEY=VALUE,...",
              help="Every one that runs and has these labels.")  # fmt: skip
def command(names: tuple[str, ...], everything: bool, labels: tuple[str, ...]) -> None:
    """End workflows of a cluster at once, without their exit handlers.

    NAMES are workflows, beginnings of their names, or @latest. `foxrun stop` lets the exit handler, which alerts, run.

    \b
    foxrun terminate @latest --engine argo
    """
    from orchestrator.outcome import is_completed

    engine = options.cluster_of(options.current())
    for name in options.chosen(
        engine, names, everything=everything, labels=labels, which=lambda w: not is_completed(w)
    ):
        if is_completed(engine.get(name)):
            click.echo(f"{name} is completed already")
            continue
        engine.terminate(name)
        click.echo(f"{name} is being terminated")

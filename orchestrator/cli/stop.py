"""``foxrun stop``."""

from __future__ import annotations

import click

from orchestrator.cli import options


@click.command("stop")
@options.NAMES
@click.option("--all", "everything", is_flag=True, help="Every workflow that runs.")
@click.option(
    "-l",
    "--selector",
    "labels",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="Every one that runs and has these labels.",
)
def command(names: tuple[str, ...], everything: bool, labels: tuple[str, ...]) -> None:
    """Stop workflows; what they wrote is kept.

    NAMES are workflows, beginnings of their names, or @latest.

    \b
    foxrun stop @latest
    """
    from orchestrator.outcome import is_completed

    engine = options.engine_of(options.current())
    for name in options.chosen(
        engine, names, everything=everything, labels=labels, which=lambda w: not is_completed(w)
    ):
        if is_completed(engine.get(name)):
            click.echo(f"{name} is completed already")
            continue
        engine.stop(name)
        click.echo(f"{name} is being stopped")

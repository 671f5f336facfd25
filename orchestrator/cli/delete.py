"""``foxrun delete``."""

from __future__ import annotations

import click

from orchestrator.cli import options


@click.command("delete")
@options.NAMES
@click.option("--all", "everything", is_flag=True, help="Every workflow.")
@click.option("--completed", is_flag=True, help="Every completed workflow.")
@click.option("-l", "--selector", "labels", multiple=True, metavar="KEY=VALUE,...", help="Every one with these labels.")
@click.option("--force", is_flag=True, help="Also those that run: they are ended first.")
def command(names: tuple[str, ...], everything: bool, completed: bool, labels: tuple[str, ...], force: bool) -> None:
    """Delete workflows and everything that they wrote.

    NAMES are workflows, beginnings of their names, or @latest.

    \b
    foxrun delete @latest
    foxrun delete --completed -l seed=43
    """
    from orchestrator.outcome import is_completed
    from orchestrator.settings import home_directory

    settings = options.current()
    engine = options.engine_of(settings)
    chosen = options.chosen(
        engine, names, everything=everything or completed, labels=labels,
        which=(lambda w: is_completed(w)) if completed else (lambda w: True),
    )  # fmt: skip
    for name in chosen:
        engine.delete(name, force=force)
        (home_directory(settings) / "reports" / f"{name}.html").unlink(missing_ok=True)
        click.echo(f"{name} is deleted")

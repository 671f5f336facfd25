"""What submit, watch, retry and logs share: follow a workflow, print its verdict, exit with its code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import click

from orchestrator.cli import live
from orchestrator.cli.output import print_verdict
from orchestrator.lookup import ALERT
from orchestrator.settings import Settings, home_directory

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

# Legs side by side keep their colour; which is which is written as well.
NODE_COLOURS = {"gate": "yellow", "leg-a": "cyan", "leg-b": "magenta", "train": "cyan", "compare": "green"}


def follow_and_print(engine: Engine, name: str, *, settings: Settings, how: str, fmt: str | None) -> NoReturn:
    """Follow in the way ``how`` says (watch, wait, log), print the verdict, exit with its code."""
    with live.coming_back(name):
        from orchestrator.following import follow

        reports = home_directory(settings) / "reports"
        click.echo(f"workflow: {name}", err=True)
        if how == "log":
            print_logs(engine, name, node=None, follow=True, to_stderr=True)
        with live.screen() as shown:
            end = follow(
                engine,
                name,
                deadline_s=settings.deadline,
                reports=reports,
                show=(lambda workflow: live.show_workflow(shown, workflow)) if how == "watch" else live.waiting_parts(),
            )
    print_verdict(end.verdict, fmt=fmt if fmt == "json" else None, report=end.report, workflow=name)
    raise click.exceptions.Exit(end.verdict.exit_code)


def print_logs(
    engine: Engine, name: str, *, node: str | None, follow: bool, to_stderr: bool = False, as_json: bool = False
) -> None:
    """Lines with the part that wrote them in front, in its colour."""
    from foxrun.jsonio import dumps

    for line in engine.logs(name, node=node, follow=follow):
        if as_json:
            click.echo(dumps({"node": line.node, "text": line.text}))
            continue
        part = line.node.removesuffix("(0)")
        part = ALERT if part.endswith(".onExit") else part
        prefix = click.style(f"{part}:", fg=NODE_COLOURS.get(part.split("(")[0]))
        click.echo(f"{prefix} {line.text}", err=to_stderr)

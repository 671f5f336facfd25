"""``foxrun lint``."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import options


@click.command("lint")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@options.output("json")
def command(files: tuple[Path, ...], fmt: str | None) -> None:
    """Say whether Workflow files are valid and the local engine can run them.

    FILES are YAML or JSON, several documents in each; - is standard input. Each construct that the engine does not have
    is named. Exit code 2 when something is wrong.

    \b
    foxrun render regression-pair | foxrun lint -
    """
    from orchestrator.cli.output import print_json
    from orchestrator.linting import lint

    found = [(str(file), problem) for file in files for problem in lint(file)]
    if fmt == "json":
        print_json([{"file": file, "problem": problem} for file, problem in found])
    else:
        for file, problem in found:
            click.echo(f"{file}: {problem}")
        if not found:
            click.echo(f"{len(files)} file{'s' if len(files) > 1 else ''}: no problem found")
    if found:
        raise click.exceptions.Exit(2)

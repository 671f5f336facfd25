"""``foxrun completion``: click's own shell completion, and what of ours it completes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

VARIABLE = "_FOXRUN_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
SHOWN = 200


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what makes a shell complete commands, options and the names of workflows.

    \b
    foxrun completion bash >> ~/.bashrc
    foxrun completion zsh >> ~/.zshrc
    foxrun completion fish > ~/.config/fish/completions/foxrun.fish
    """
    from orchestrator.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None  # the choice knows the same shells
    click.echo(found(cli, {}, "foxrun", VARIABLE).source())


def answer() -> NoReturn:
    """Answer a shell that asks for completions by the variable; whatever goes wrong, the line stays as it is."""
    from orchestrator.cli.main import cli

    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere), contextlib.suppress(Exception):
        raise SystemExit(shell_complete(cli, {}, "foxrun", VARIABLE, os.environ[VARIABLE]))
    raise SystemExit(1)


def workflows(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of workflows where the settings say that they run, the newest first, with their verdict or phase."""
    from orchestrator.cli import options
    from orchestrator.following import VERDICT_LABEL
    from orchestrator.lookup import newest_first

    with ctx.scope(cleanup=False), contextlib.suppress(Exception):
        engine = options.engine_of(options.current())
        given = [str(name) for value in ctx.params.values() if isinstance(value, tuple | list) for name in value]
        found = []
        for workflow in newest_first(engine.list({})):
            name = str(workflow["metadata"]["name"])
            if name.startswith(incomplete) and name not in given:
                verdict = (workflow["metadata"].get("labels") or {}).get(VERDICT_LABEL)
                phase = (workflow.get("status") or {}).get("phase")
                found.append(CompletionItem(name, help=str(verdict or phase or "Pending")))
        return found[:SHOWN]
    return []


def workflows_or_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The same, and paths where no workflow begins so."""
    return workflows(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]

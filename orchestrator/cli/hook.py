"""``foxrun hook``: install, run, uninstall."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from orchestrator.cli import options

COMMAND = "foxrun check"


@click.group("hook", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Refuse commits that break determinism: a git hook that runs the gate on what is staged.

    \b
    foxrun hook install

    Nothing staged that can change bits (setting hook_paths): the hook ends at once. FOXRUN_HOOK=off skips it once.
    """


@command.command("install")
def install() -> None:
    """Write the hooks pre-commit and pre-merge-commit; hooks that are there are kept and run first."""
    from orchestrator import hook

    settings = options.current()
    for written in hook.install(Path.cwd(), settings.hook_paths):
        click.echo(f"{written.file}" + (f" (runs {written.kept.name} first)" if written.kept else ""))
    click.echo(f"looks at: {' '.join(settings.hook_paths)}", err=True)
    click.echo(f"runs: {COMMAND} {settings.hook_check}".rstrip() + ", on what is staged", err=True)


@command.command("uninstall")
def uninstall() -> None:
    """Take the hooks away and put back those that were there before."""
    from orchestrator import hook

    gone = hook.uninstall(Path.cwd())
    for file in gone:
        click.echo(f"{file}")
    if not gone:
        click.echo("no hook of foxrun is installed here", err=True)


@command.command("run")
def run() -> None:
    """Run the gate on what is staged, as the hook does. Exit codes as of foxrun check; not 0 refuses the commit."""
    from foxrun import git, git_staged
    from orchestrator import hook
    from orchestrator.cli.main import execute
    from orchestrator.errors import usage_of
    from orchestrator.settings import home_directory

    if os.environ.get("FOXRUN_HOOK", "").lower() in hook.OFF:
        click.echo("foxrun: FOXRUN_HOOK says off, nothing is checked", err=True)
        return
    settings = options.current()
    try:
        top = git.top_level(Path.cwd())
        commit = git_staged.staged_commit(top, os.environ)
        hook.without_git_variables()
        place = home_directory(settings) / "worktrees" / commit
        git.add_worktree(top, commit, place)
        missing = git_staged.fill_submodules(top, commit, place)
    except git.GitError as error:
        raise usage_of(error) from None
    for path in missing:
        click.echo(f"note: submodule {path} is not initialised here, so the run has no files of it", err=True)
    click.echo("foxrun: checking what is staged", err=True)
    try:
        os.chdir(place)
        code = execute(["check", "--timeout", f"{settings.hook_timeout:g}", *shlex.split(settings.hook_check)])
    finally:
        os.chdir(top)
        git_staged.remove_worktree(top, place)
    if code:
        click.echo(f"foxrun: the commit is refused. {hook.ESCAPE}", err=True)
        raise click.exceptions.Exit(code)

"""Options that several commands share, and what they are turned into."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orchestrator.pods import alert_variables
from orchestrator.setting_values import parse_duration
from orchestrator.settings import Settings, home_directory, load_settings

if TYPE_CHECKING:
    from orchestrator.engines.argo import ArgoEngine
    from orchestrator.engines.base import Engine
    from orchestrator.places import Places

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """Seconds, or 90s, 15m, 1h30m, 2d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """A number of seconds."""
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


class Run(click.ParamType["Path | str"]):
    """A path, or an address on S3, whose two slashes a path would lose."""

    name = "path or s3://bucket/prefix"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """The address as it is, or the path."""
        from orchestrator.places import is_remote

        return value if is_remote(value) else Path(value)


def places(*named: Path | str) -> Places | None:
    """How to reach what is named, by the settings that hold here; None where all of it are paths, which need none.

    Requests to S3 that are made again are told on stderr.
    """
    from orchestrator.places import Places, is_remote

    if not any(is_remote(where) for where in named):
        return None
    return Places(current(), say=say)


MODES = click.IntRange(0, 3)


def _workflows(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from orchestrator.cli import completion

    return [*completion.workflows(ctx, param, incomplete)]


def workflows_or_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """What a shell offers where a workflow or a path may stand."""
    from orchestrator.cli import completion

    return [*completion.workflows_or_files(ctx, param, incomplete)]


NAME = click.argument("name", shell_complete=_workflows)
NAMES = click.argument("names", nargs=-1, shell_complete=_workflows)


def output(*formats: str, default: str | None = None, help: str = "Print it so.") -> Callable[[F], F]:
    """``-o FORMAT``, one of ``formats``."""
    return click.option("-o", "--output", "fmt", type=click.Choice(formats), default=default, help=help)


def training(function: F) -> F:
    """What decides a training: seed, mode, steps, parameters, data. ``-p`` of these names counts as the option."""
    for option in (
        click.option("--parameter-file", type=click.Path(path_type=Path),
                     help="YAML or JSON object of parameters; -p wins over it."),
        click.option("-p", "--parameter", "parameters", multiple=True, metavar="KEY=VALUE",
                     help="A parameter of the trainer; may be repeated. data=PATH is the input, data=synthetic none."),
        click.option("--mode", type=MODES, help="0 fast, 1 pedantic, 2 control, 3 fast and exact.  [setting mode, 1]"),
        click.option("--seed", type=click.IntRange(min=0), help="Seed of every random draw.  [setting seed, 42]"),
    ):  # fmt: skip
        function = option(function)
    return function


def current(**flags: Any) -> Settings:
    """The settings that hold here and now; options of `foxrun` itself count for all its commands."""
    context = click.get_current_context(silent=True)
    above = dict(context.find_root().params) if context is not None else {}
    flags = {**above, **{name: value for name, value in flags.items() if value is not None}}
    settings = load_settings(Path.cwd(), os.environ, flags)
    for note in settings.notes:
        click.echo(f"note: {note}", err=True)
    return settings


def engine_of(settings: Settings) -> Engine:
    """The engine that the settings name."""
    from orchestrator.submission import open_engine

    # The exit handler is a process of the local engine, and has all this from variables, as on a cluster.
    if settings.alerts:
        os.environ["FOXRUN_ALERTS"] = " ".join(settings.alerts)
    os.environ.update(alert_variables(settings))
    if settings.engine == "local" and settings.home:
        os.environ["FOXRUN_HOME"] = str(home_directory(settings))  # where it finds the workflow that it tells of
    return open_engine(settings, say=say)


def cluster_of(settings: Settings) -> ArgoEngine:
    """The argo engine, for what only clusters have."""
    from orchestrator.submission import open_cluster

    return open_cluster(settings, say=say)


def say(text: str) -> None:
    """A note on stderr."""
    click.echo(f"note: {text}", err=True)


def selector(texts: Sequence[str]) -> Mapping[str, str]:
    """``-l seed=42,mode=1``: labels, for which ``foxrun.dev/`` may be left out. Raises click.BadParameter."""
    labels: dict[str, str] = {}
    for item in (part for text in texts for part in text.split(",") if part):
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{item!r} is no label: write KEY=VALUE", param_hint="-l")
        labels[key if "/" in key else f"foxrun.dev/{key}"] = value.removeprefix("=")
    return labels


def is_terminal() -> bool:
    """Whether progress can be drawn over itself."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def chosen(
    engine: Engine,
    names: Sequence[str],
    *,
    everything: bool,
    labels: Sequence[str],
    which: Callable[[Mapping[str, Any]], bool],
) -> list[str]:
    """The workflows that a command is to act on: by name, or all of ``which`` that have the labels.

    Raises:
        click.UsageError: neither was asked for, or both.
    """
    from orchestrator.lookup import full_name, newest_first

    if names and (everything or labels):
        raise click.UsageError("give names, or --all, or -l, and not both")
    if not names and not everything and not labels:
        raise click.UsageError("name a workflow, or give --all or -l KEY=VALUE")
    if names:
        return list(dict.fromkeys(full_name(engine, name) for name in names))
    found = [str(w["metadata"]["name"]) for w in newest_first(engine.list(selector(labels))) if which(w)]
    if not found:
        click.echo("no workflow matches", err=True)
    return found


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """``-p key=value`` as strings. Raises click.BadParameter."""
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{text!r} is no parameter: write KEY=VALUE", param_hint="-p")
        found[key] = value
    return found

"""``foxrun sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration
from orchestrator.cli.pods import describe_pods, of_pods
from orchestrator.cli.submit import describe_run, go_on

MOST = 100


class Seeds(click.ParamType[tuple[int, ...]]):
    """``42-46``, or ``42,43,50``."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The seeds in the order in which they were named."""
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for item in str(value).split(","):
            first, dash, last = item.strip().partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()):
                self.fail(f"{item!r}: seeds are like 42-46, or 42,43,50", param, ctx)
            seeds = range(int(first), int(last if dash else first) + 1)
            if len(found) + len(seeds) > MOST:
                self.fail(f"{value}: a sweep has at most {MOST} seeds", param, ctx)
            found += seeds
        if len(found) < 2:
            self.fail(f"{value}: a sweep has two seeds or more", param, ctx)
        return tuple(dict.fromkeys(found))


@click.command("sweep")
@click.option("--seeds", type=Seeds(), default="42-46", show_default=True, help="A range, or a list with commas.")
@click.option(
    "--parallel", type=click.IntRange(min=1), default=2, show_default=True, help="Pods at a time: 2 are one pair."
)
@click.option("--worktree", is_flag=True, help="Run the files as they are, uncommitted changes included.")
@click.option("--sha", "revision", metavar="REV", help="Run this commit. Without it: HEAD.")
@options.training
@describe_run
@describe_pods
@click.option("--deadline", type=Duration(), help="Stop following after this time; the workflow goes on.")
@click.option("--dry-run", is_flag=True, help="Print the Workflow and submit nothing.")
@click.option("--watch", "how", flag_value="watch", help="Follow with live progress (the local engine's default).")
@click.option("--wait", "how", flag_value="wait", help="Follow silently.")
@click.option("--log", "how", flag_value="log", help="Follow by printing what the parts write.")
@click.option("--detach", "how", flag_value="detach", help="Do not follow (a cluster's default).")
@options.output("json", "yaml", "name", help="Print the verdict (--detach: the Workflow) so.")
def command(
    seeds: tuple[int, ...], parallel: int, dry_run: bool, how: str | None, fmt: str | None, deadline: float | None,
    **flags: Any,
) -> None:  # fmt: skip
    """Run a pair for each of several seeds, and say in one table which of them are exact.

    \b
    foxrun sweep --seeds 42-46 -p envs=16 --steps 60

    Exits with the worst verdict's code. Also compares the runs of different seeds: a seed that changes nothing is
    reported as unused, and leaves that no seed reaches are named.
    """
    from orchestrator import submission
    from orchestrator.cli import live
    from orchestrator.cli.output import print_json, print_yaml
    from orchestrator.cli.submit import request_of

    if flags["seed"] is not None:
        raise click.UsageError("--seed does not go here: give --seeds")
    settings = options.current(deadline=deadline, **of_pods(flags))
    flags = {**flags, "regression_pair": False, "ci_gate": False, "against": None, "seed": seeds[0]}
    request = request_of(flags, kind="seed-sweep", seeds=seeds, parallel=parallel)
    there = options.engine_of(settings)
    if dry_run:
        parameters = submission.parameters_of(request, settings, there, directory=Path.cwd(), store=False)
        return (print_json if fmt == "json" else print_yaml)(submission.workflow_of(request.kind, parameters))
    workflow = submission.made(request, settings, there, directory=Path.cwd(), store=True)
    with live.coming_back(workflow["metadata"]["name"], there.get):
        return go_on(there, there.submit(workflow), settings=settings, how=how, fmt=fmt)

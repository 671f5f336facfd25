"""``foxrun submit``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration
from orchestrator.cli.pods import describe_pods, of_pods

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from orchestrator.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def describe_code(function: F) -> F:
    """Which code runs; submit and render share it."""
    for option in (
        click.option("--against", metavar="REV", help="Leg B runs this commit: does a refactor change a bit?"),
        click.option("--worktree", is_flag=True, help="Run the files as they are, uncommitted changes included."),
        click.option(
            "--sha", "revision", metavar="REV",
            help="Run this commit, in a clean worktree: a SHA, branch or tag. Without it: HEAD.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def describe_run(function: F) -> F:
    """How it is run and checked; submit and render share it."""
    count, path = click.IntRange(min=1), click.Path(path_type=Path)
    for option in (
        click.option(
            "--timeout", type=Duration(), help="A leg that takes longer is stopped.  [setting timeout, a day]"
        ),
        click.option(
            "--name", help="Name of the workflow. The same name and request again attaches to it, or goes on."
        ),
        click.option("--tie-break", is_flag=True, help="On drift a third leg, elsewhere, names the odd one out."),
        click.option("--verify", is_flag=True, help="The comparison also checks every file against its manifest."),
        click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance for checksums."),
        click.option("--tolerance", type=path, help="Tolerance file; without it, bits are compared."),
        click.option("--gate-steps", type=count, help="Steps of each twin of the gate.  [setting gate_steps, 50]"),
        click.option("--no-gate", is_flag=True, help="Leave the gate out: run even a build that is not deterministic."),
        click.option(
            "--trainer",
            metavar="CMD",
            help='Your trainer, such as "python train.py"; it writes the run contract.  [setting trainer, ours]',
        ),
        click.option(
            "--eval-steps",
            type=click.IntRange(min=0),
            help="Evaluation steps after training.  [setting eval_steps, 50]",
        ),
        click.option("--steps", type=count, help="Training steps.  [setting steps, 200]"),
    ):
        function = option(function)
    return function


@click.command("submit")
@click.option("--regression-pair", is_flag=True, help="Run it twice, side by side, and compare every bit.")
@click.option("--ci-gate", is_flag=True, help="The mid-smoke twice (2000 + 500 steps unless set), compared: for CI.")
@describe_code
@options.training
@describe_run
@describe_pods
@click.option("--deadline", type=Duration(), help="Stop following after this time; the workflow goes on.")
@click.option(
    "--dry-run",
    is_flag=False,
    flag_value="client",
    type=click.Choice(["client", "server"]),
    help="Print the Workflow and submit nothing; =server: as the cluster would store it, checked by it.",
)
@click.option(
    "--from",
    "template",
    metavar="KIND/NAME",
    help="Run a template of the cluster: workflowtemplate/NAME or cronworkflow/NAME; -p are its parameters.",
)
@click.option("--watch", "how", flag_value="watch", help="Follow with live progress (the local engine's default).")
@click.option("--wait", "how", flag_value="wait", help="Follow silently.")
@click.option("--log", "how", flag_value="log", help="Follow by printing what the parts write.")
@click.option(
    "--detach", "how", flag_value="detach", help="Do not follow: print the name and return (a cluster's default)."
)
@options.output("json", "yaml", "name", help="Print the verdict (--detach: the Workflow) so.")
def command(
    how: str | None, dry_run: str | None, template: str | None, fmt: str | None, deadline: float | None, **flags: Any
) -> None:  # fmt: skip
    """Run a training, or with --regression-pair the same one twice, and say what it came to.

    \b
    foxrun submit --sha HEAD --regression-pair -p envs=16 --steps 60
    foxrun submit --regression-pair --against HEAD~1 -p data=book.mbp-10.dbn.zst --seed 43
    foxrun submit --worktree --dry-run -o yaml
    foxrun submit --regression-pair --engine argo --wait
    foxrun submit --engine argo --from workflowtemplate/ci-gate -p sha=1a2b3c4

    First the gate runs the trainer twice for 50 steps and compares; when the two part, nothing else is run (exit 4).
    Exits with the verdict's code. Ctrl-C ends the following only.
    """
    from orchestrator import submission
    from orchestrator.cli import live
    from orchestrator.cli.output import print_json, print_yaml

    settings = options.current(deadline=deadline, **of_pods(flags))
    request = request_of(flags)
    there = options.engine_of(settings)
    show = print_json if fmt == "json" else print_yaml
    if template is not None:
        cluster, pairs = options.cluster_of(settings), options.pairs(flags["parameters"])
        if dry_run == "client":
            return show(cluster.made_from(template, pairs, name=flags["name"]))
        if dry_run == "server":
            return show(cluster.check(cluster.made_from(template, pairs, name=flags["name"])))
        name = cluster.from_template(template, pairs, name=flags["name"])
        with live.coming_back(name):
            return go_on(there, name, settings=settings, how=how, fmt=fmt)
    if dry_run == "server":
        cluster = options.cluster_of(settings)
        return show(
            cluster.check(submission.made(request, settings, there, directory=Path.cwd(), store=False, say=options.say))
        )
    if dry_run == "client":
        parameters = submission.parameters_of(request, settings, there, directory=Path.cwd(), store=False)
        return show(submission.workflow_of(request.kind, parameters))
    if submission.leaves_out_changes(request, Path.cwd()):
        click.echo("note: HEAD is run, without the uncommitted changes here (--worktree runs them)", err=True)
    workflow = submission.made(request, settings, there, directory=Path.cwd(), store=True, say=options.say)
    with live.coming_back(workflow["metadata"]["name"], there.get):
        return go_on(there, there.submit(workflow), settings=settings, how=how, fmt=fmt)


def go_on(there: Engine, name: str, *, settings: Settings, how: str | None, fmt: str | None) -> None:
    """Follow, or say how to: a cluster runs on without us, the local engine is mostly waited for."""
    from orchestrator.cli.follow import follow_and_print
    from orchestrator.cli.output import print_json, print_yaml

    how = how or ("watch" if there.name == "local" else "detach")
    if how == "detach":
        if fmt == "json":
            print_json(there.get(name))
        elif fmt == "yaml":
            print_yaml(there.get(name))
        else:
            click.echo(name)
        if fmt is None:
            click.echo(f"follow it: foxrun watch {name}", err=True)
        return
    if fmt == "name":
        click.echo(name)
    follow_and_print(there, name, settings=settings, how=how, fmt=fmt)


def request_of(flags: dict[str, Any], **more: Any) -> Any:
    """The request that the options make; ``more``: its fields that have no such option.

    Raises click.UsageError for options that exclude each other.
    """
    from orchestrator.submission import Request

    if flags["worktree"] and flags["revision"] is not None:
        raise click.UsageError("--worktree runs the files as they are and --sha a commit: give one of them")
    if flags["ci_gate"] and flags["regression_pair"]:
        raise click.UsageError("--ci-gate and --regression-pair are two kinds of workflow: give one of them")
    more.setdefault(
        "kind", "ci-gate" if flags["ci_gate"] else "regression-pair" if flags["regression_pair"] else "train"
    )
    return Request(
        **more,
        revision=flags["revision"] or "HEAD",
        gate=not flags["no_gate"],
        timeout_s=flags["timeout"],
        **{
            name: flags[name]
            for name in (
                "worktree", "against", "seed", "mode", "steps", "eval_steps", "parameters", "parameter_file",
                "trainer", "gate_steps", "tolerance", "rtol", "verify", "tie_break", "name",
            )
        },
    )  # fmt: skip

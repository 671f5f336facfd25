"""``foxrun check``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration
from orchestrator.errors import UsageError, usage_of
from orchestrator.settings import Settings, home_directory

CHECKS_KEPT = 20


@click.command("check", context_settings={"ignore_unknown_options": False})
@click.option(
    "--sha", "revision", metavar="REV", help="Check this commit, in a clean worktree. Without it: the files here."
)
@options.training
@click.option("--steps", type=click.IntRange(min=1), help="Steps of each twin.  [setting gate_steps, 50]")
@click.option(
    "--parameters", "parameters_json", metavar="JSON", help="Parameters as a JSON object, as a workflow passes them."
)
@click.option("--data", type=click.Path(path_type=Path), help="The input file, as a workflow passes it.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Keep the twins' runs and logs here; without it: in FOXRUN_HOME/checks.",
)
@click.option("--timeout", type=Duration(), help="Twins that take longer hang: exit 6.  [setting gate_timeout, 30m]")
@click.option(
    "--only",
    "only",
    multiple=True,
    metavar="NAME",
    help="Let the twins differ in this alone (see below); may be repeated.",
)
@click.option("--verdict", "verdict_file", type=click.Path(path_type=Path), help="Write verdict.json here.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write the HTML report here.")
@click.option(
    "--write",
    "writes",
    multiple=True,
    metavar="NAME=PATH",
    help="Write verdict, step, leaf or pnl-difference to a file.",
)
@click.option(
    "--explain/--no-explain", default=True, help="When they part, find which difference it takes.  [default: yes]"
)
@click.option("--log", is_flag=True, help="Show what the twins write.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1,
    help="Gates in a row: does the first leaf alternate?  [default: 1]",
)
@options.output("json", help="Print the verdict so.")
@click.argument("trainer", nargs=-1, type=click.UNPROCESSED)
def command(
    revision: str | None, steps: int | None, parameters_json: str | None, data: Path | None, out: Path | None,
    timeout: float | None, only: tuple[str, ...], verdict_file: Path | None, report_file: Path | None,
    writes: tuple[str, ...], explain: bool, log: bool, trials: int, fmt: str | None, trainer: tuple[str, ...],
    **flags: Any,
) -> None:  # fmt: skip
    """The gate alone, here: run the trainer twice, the second time hostile, and compare every bit.

    \b
    foxrun check -p envs=16
    foxrun check --steps 20 --seed 7 -- python train.py

    The second twin differs in all that must not matter: hash-seed, clock, directories, listing-order,
    environment-order, allocator, memory. --trials 5 makes five gates and a table of where each parted; --mode 2 is
    the control, in which nothing is forced. Exit codes: 0 they agree, 4 they parted, 5 a twin failed, 6 they hang.
    """
    from orchestrator import gate
    from orchestrator.cli import output
    from orchestrator.training import command_of, training_of
    from orchestrator.trials import run_trials
    from orchestrator.twin_run import GateRequest

    if isinstance(flags.get("parameter_file"), Path) and parameters_json is not None:
        raise click.UsageError("--parameters and --parameter-file exclude each other")
    output.check_target(report_file, "--report")
    output.check_target(verdict_file, "--verdict")
    settings = options.current(gate_steps=steps, gate_timeout=timeout)
    given = (*_pairs(parameters_json), *flags["parameters"])
    training = training_of(
        settings, parameters=given, parameter_file=flags["parameter_file"], seed=flags["seed"], mode=flags["mode"]
    )
    request = GateRequest(
        trainer=trainer or command_of(settings.trainer),
        out=out or new_directory(settings),
        seed=training.seed,
        mode=training.mode,
        steps=settings.gate_steps,
        parameters=training.parameters,
        data=data or training.data,
        timeout_s=settings.gate_timeout,
        hostilities=gate.hostilities(only),
    )
    told: dict[str, Any] = {}
    with code(revision, settings) as (directory, variables), listener_of(log) as listener:
        environ = {**os.environ, **variables}
        if trials == 1:
            verdict = gate.run_gate(request, environ, listener, directory=directory, explain=explain)
        else:
            found = run_trials(request, trials, environ, listener, directory=directory, explain=explain)
            verdict, told["trials"] = found.verdict, [dataclasses.asdict(trial) for trial in found.trials]
    if verdict.exit_code in (5, 6) and os.environ.get("FOXRUN_LEG") == "gate":  # a part of a workflow
        for line in gate.log_ends(request.out):
            click.echo(line, err=True)
    gate.write_termination_log(verdict, os.environ)
    if out is None:  # a directory of our own: what belongs together lies together
        verdict_file = verdict_file or request.out / "verdict.json"
        report_file = report_file or request.out / "report.html"
    output.write_results(verdict, verdict_file=verdict_file, report_file=report_file, writes=writes)
    output.print_verdict(verdict, fmt=fmt, report=report_file, out=str(request.out), **told)
    if trials > 1 and fmt is None:
        output.table(found.rows())
        click.echo(found.sentence())
    raise click.exceptions.Exit(verdict.exit_code)


def _pairs(text: str | None) -> tuple[str, ...]:
    """``--parameters`` of a workflow, as ``-p`` would give them."""
    if text is None:
        return ()
    try:
        loaded = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--parameters is no JSON: {error}", remedy="give an object of strings, or use -p") from None
    if not isinstance(loaded, dict):
        raise UsageError("--parameters is no JSON object", remedy='for example: \'{"envs": "16"}\'')
    return tuple(
        f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in loaded.items()
    )


def new_directory(settings: Settings) -> Path:
    """A place among the last checks, of which the newest stay: their runs can be compared again."""
    checks = home_directory(settings) / "checks"
    if checks.is_dir():
        for old in sorted(checks.iterdir())[: -CHECKS_KEPT + 1]:
            shutil.rmtree(old, ignore_errors=True)
    return checks / f"{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(3)}"


@contextlib.contextmanager
def code(revision: str | None, settings: Settings) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The directory to run in, and what the trainer is told of the code there."""
    if revision is None:
        yield Path.cwd(), {}
        return
    from foxrun import git

    try:
        top = git.top_level(Path.cwd())
        commit = git.resolve(top, revision)
        place = git.add_worktree(top, commit, home_directory(settings) / "worktrees" / commit)
        tree = git.commit_tree(top, commit)
    except git.GitError as error:
        raise usage_of(error) from None
    yield place, {"FOXRUN_SHA": commit, "FOXRUN_TREE": tree}


@contextlib.contextmanager
def listener_of(log: bool) -> Iterator[Any]:
    """Progress of both twins on stderr, or their lines."""
    from orchestrator.cli import live
    from orchestrator.following import NodeView
    from orchestrator.twin_run import TWINS, Listener

    def stage(text: str) -> None:
        click.echo(text, err=True)

    if log:
        yield Listener(line=lambda twin, text: click.echo(f"{twin}: {text}", err=True), stage=stage)
        return
    state: dict[str, tuple[int, int]] = {}
    with live.screen() as shown:

        def progress(twin: str, done: int, of: int) -> None:
            state[twin] = (done, of)
            shown.show(
                [
                    NodeView(id=name, name=name, phase="Running", done=state[name][0], of=state[name][1], message="")
                    for name in TWINS
                    if name in state
                ]
            )

        yield Listener(progress=progress, stage=stage)

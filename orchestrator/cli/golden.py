"""``foxrun golden``: record, check, list, explain, bisect."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration

if TYPE_CHECKING:
    from orchestrator.goldens.golden import Golden


@click.group("golden", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Keep the bits of a configuration in the repository, and find the commit that changed them.

    \b
    foxrun golden record -p envs=16
    foxrun golden check -p envs=16
    foxrun golden bisect v1.4 HEAD -p envs=16

    One small text file per GPU model or CPU type, torch version, mode, seed and configuration.
    """


@command.command("record")
@options.training
@click.option("--steps", type=click.IntRange(min=1), help="Steps of each twin.  [setting gate_steps, 50]")
@click.option("--sha", "revision", metavar="REV", help="Record this commit. Without it: the files here.")
@click.option("--reason", default="", metavar="TEXT", help="Why these bits are right; needed where they change.")
@click.option("--timeout", type=Duration(), help="Twins that take longer hang: exit 6.  [setting gate_timeout, 30m]")
@options.output("json", help="Print the verdict so.")
@click.argument("trainer", nargs=-1, type=click.UNPROCESSED)
def record(reason: str, fmt: str | None, **flags: Any) -> None:
    """Run the gate here, and keep the bits of its twins when they agree.

    A golden that changes needs --reason; all reasons stay in the file.
    """
    from orchestrator.cli.output import print_verdict
    from orchestrator.goldens import recording

    made = _gate(flags)
    recorded = recording.record(
        made.verdict, made.out / "twin1", made.folder, reason=reason.strip(), commit=made.commit
    )
    extra: dict[str, Any] = {"golden": str(recorded.file), "recorded": recorded.what} if recorded.file else {}
    print_verdict(recorded.verdict, fmt=fmt, **extra)
    if recorded.file and fmt is None:
        click.echo(f"golden: {recorded.file} {recorded.what}")
    raise click.exceptions.Exit(recorded.verdict.exit_code)


@command.command("check")
@options.training
@click.option("--steps", type=click.IntRange(min=1), help="Steps of each twin.  [setting gate_steps, 50]")
@click.option("--sha", "revision", metavar="REV", help="Check this commit. Without it: the files here.")
@click.option("--run", "run_directory", type=click.Path(path_type=Path), help="Check this run; runs nothing.")
@click.option("--if-recorded", is_flag=True, help="No golden for this configuration is no failure.")
@click.option("--timeout", type=Duration(), help="Twins that take longer hang: exit 6.  [setting gate_timeout, 30m]")
@click.option("--verdict", "verdict_file", type=click.Path(path_type=Path), help="Write verdict.json here.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write the HTML report here.")
@click.option("--write", "writes", multiple=True, metavar="NAME=PATH", help="Write verdict, step, leaf, ... to a file.")
@options.output("json", help="Print the verdict so.")
@click.argument("trainer", nargs=-1, type=click.UNPROCESSED)
def check(
    run_directory: Path | None, if_recorded: bool, verdict_file: Path | None, report_file: Path | None,
    writes: tuple[str, ...], fmt: str | None, **flags: Any,
) -> None:  # fmt: skip
    """Compare the bits that this machine gives now, or those of a run, with the golden.

    A run may be longer than the golden: its first steps are compared. Exit codes: 0 the golden's bits, 3 others,
    4 the twins parted, 7 no golden for this configuration.
    """
    from foxrun.reader import open_run
    from orchestrator.cli.output import print_verdict, write_results
    from orchestrator.compare import verdict as v
    from orchestrator.goldens import checking

    if run_directory is not None:
        verdict = checking.check(open_run(run_directory), _folder())
    else:
        made = _gate(flags)
        agreed = made.verdict.verdict == v.IDENTICAL
        verdict = checking.check(open_run(made.out / "twin1"), made.folder) if agreed else made.verdict
    if if_recorded and verdict.verdict == v.INCOMPARABLE and verdict.subject == checking.SUBJECT:
        click.echo(f"no golden is recorded for this configuration: {verdict.message}", err=True)
        return
    write_results(verdict, verdict_file=verdict_file, report_file=report_file, writes=writes)
    print_verdict(verdict, fmt=fmt, report=report_file)
    raise click.exceptions.Exit(verdict.exit_code)


@command.command("list")
@options.output("json")
def list_(fmt: str | None) -> None:
    """List the goldens: hardware, torch, mode, seed, steps, and why each was recorded last."""
    from orchestrator.cli.output import print_json
    from orchestrator.goldens import golden as g

    folder = _folder()
    found, damaged = g.readable(g.all_of(folder))
    if fmt == "json":
        print_json(
            [
                {"file": str(f), **x.key.fields(), "steps": x.steps, "recordings": [vars(r) for r in x.recordings]}
                for f, x in found
            ]
        )
    elif found:
        _print_table(found, folder)
    elif not damaged:
        click.echo(f"no golden in {folder}; foxrun golden record makes one", err=True)
    if damaged:
        for error in damaged[1:]:
            click.echo(f"error: {error}", err=True)
        raise damaged[0]


def _print_table(found: Sequence[tuple[Path, Golden]], folder: Path) -> None:
    from orchestrator.cli.output import table
    from orchestrator.printable import printable

    rows = [["HARDWARE", "TORCH", "MODE", "SEED", "STEPS", "FILE", "RECORDED", "REASON"]]
    for file, golden in found:
        key, last = golden.key, golden.recordings[-1:]
        cells = [key.hardware, key.torch, key.mode, key.seed, golden.steps, file.relative_to(folder)]
        cells += [last[0].date, last[0].reason] if last else ["-", "-"]
        rows.append([printable(str(cell)) for cell in cells])
    table(rows)


@command.command("explain")
@click.argument("run_directory", type=click.Path(path_type=Path), required=False, metavar="[RUN]")
@click.option("--file", "golden_file", type=click.Path(path_type=Path), help="Explain this golden.")
@options.output("json")
def explain(run_directory: Path | None, golden_file: Path | None, fmt: str | None) -> None:
    """Say which golden a run is held against, or why none fits it; or tell the story of one golden.

    Without RUN and --file: of every golden, what it holds for and each reason that was ever given.
    """
    from foxrun.reader import open_run
    from orchestrator.cli.output import print_json
    from orchestrator.goldens import explaining

    folder = _folder()
    if run_directory is not None:
        told = explaining.of_run(open_run(run_directory), folder)
    else:
        told = explaining.of_files([golden_file] if golden_file else explaining.all_of(folder))
    if fmt == "json":
        return print_json(told.data)
    for line in told.lines:
        click.echo(line)


@command.command("bisect")
@click.argument("good")
@click.argument("bad", default="HEAD")
@options.training
@click.option("--steps", type=click.IntRange(min=1), help="Training steps of each run.  [setting gate_steps, 50]")
@click.option("--trainer", metavar="COMMAND", help="Another trainer.  [setting trainer]")
@click.option("--timeout", type=Duration(), help="A run that takes longer is skipped.  [setting timeout, 1d]")
@options.output("json")
def bisect(good: str, bad: str, fmt: str | None, **flags: Any) -> None:
    """Name the first commit after GOOD, up to BAD, that changed bits, with step and leaf.

    Runs pairs of commits here, side by side (30 commits take five), along first parents. Commits that do not build are
    skipped. Exit codes: 3 a commit was found, 0 GOOD and BAD have the same bits, 5 one of them cannot be run.
    """
    from orchestrator.cli import live
    from orchestrator.cli.output import print_verdict
    from orchestrator.goldens.bisecting import Bisection
    from orchestrator.submission import Request, open_engine

    settings = dataclasses.replace(options.current(engine="local"), engine="local")
    engine = open_engine(settings)

    def follow(name: str) -> dict[str, Any]:
        workflow: dict[str, Any] = {}
        with live.coming_back(name), live.screen() as shown:
            for workflow in engine.watch(name, deadline_s=settings.deadline):
                live.show_workflow(shown, workflow)
        return engine.get(name)

    request = Request(
        steps=flags["steps"] or settings.gate_steps,
        eval_steps=0,
        timeout_s=flags["timeout"],
        **{name: flags[name] for name in ("seed", "mode", "parameters", "parameter_file", "trainer")},
    )
    bisection = Bisection(
        request, settings, engine, directory=Path.cwd(), say=lambda text: click.echo(text, err=True), follow=follow
    )
    found = bisection.run(good, bad)
    plain = dataclasses.asdict(dataclasses.replace(found, verdict=None))  # type: ignore[arg-type]
    for tried in plain["tried"]:
        tried["run"] = str(tried["run"]) if tried["run"] else None
    print_verdict(found.verdict, fmt=fmt, bisect=plain)
    if fmt is None:
        skipped = [t for t in found.tried if t.result == "skipped"]
        click.echo(f"pairs run: {found.pairs}, commits tried: {len(found.tried)}, skipped: {len(skipped)}")
        for tried in skipped:
            click.echo(f"skipped {tried.commit[:12]} ({tried.subject}): {tried.why}")
    raise click.exceptions.Exit(found.verdict.exit_code)


@dataclasses.dataclass(frozen=True)
class _Gate:
    verdict: Any
    out: Path
    folder: Path
    commit: str


def _folder() -> Path:
    """Where goldens lie: the setting, from the root of the repository on."""
    from foxrun import git

    settings = options.current()
    try:
        root = git.top_level(Path.cwd())
    except git.GitError:
        root = Path.cwd()
    return root / Path(settings.goldens).expanduser()


def _gate(flags: dict[str, Any]) -> _Gate:
    """Run the gate as ``foxrun check`` does."""
    from orchestrator import gate
    from orchestrator.cli import check as cli_check
    from orchestrator.training import command_of, training_of
    from orchestrator.twin_run import GateRequest

    settings = options.current(gate_steps=flags["steps"], gate_timeout=flags["timeout"])
    training = training_of(
        settings,
        parameters=flags["parameters"],
        parameter_file=flags["parameter_file"],
        seed=flags["seed"],
        mode=flags["mode"],
    )
    request = GateRequest(
        trainer=flags["trainer"] or command_of(settings.trainer),
        out=cli_check.new_directory(settings),
        seed=training.seed,
        mode=training.mode,
        steps=settings.gate_steps,
        parameters=training.parameters,
        data=training.data,
        timeout_s=settings.gate_timeout,
    )
    with (
        cli_check.code(flags["revision"], settings) as (directory, variables),
        cli_check.listener_of(False) as listener,
    ):
        verdict = gate.run_gate(request, {**os.environ, **variables}, listener, directory=directory)
    return _Gate(verdict, request.out, _folder(), variables.get("FOXRUN_SHA") or _clean_head())


def _clean_head() -> str:
    """The commit that is checked out, where the files are as in it; else empty."""
    from foxrun import git

    try:
        return "" if git.is_dirty(Path.cwd()) else git.resolve(Path.cwd(), "HEAD")
    except git.GitError:
        return ""

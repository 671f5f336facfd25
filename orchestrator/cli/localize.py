"""``foxrun localize``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.cli import options
from orchestrator.cli.options import Duration


@click.command("localize")
@click.option("--trials", type=click.IntRange(min=1), default=3, help="Pairs of twins before agreement counts.  [3]")
@click.option("--steps", type=click.IntRange(min=1), help="Look at the first N steps only, and end the program there.")
@click.option("--timeout", type=Duration(), default=600.0, help="Time for all of it.  [10m]")
@click.option("--remedies/--no-remedies", "remedies", default=True, help="Try remedies on the twins.  [yes]")
@click.option("--replay", "replays", type=click.IntRange(min=0), default=20, help="Runs of the operation alone.  [20]")
@click.option("--other", metavar="COMMAND", help="The second twin runs this command: a resumed run, aligned by step.")
@click.option("--dump-steps", metavar="FIRST-LAST", help="Keep and compare the tensors of these steps byte by byte.")
@click.option("--in-place", is_flag=True, help="Run both twins here, not in copies of the working directory.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the twins' traces and logs here.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write the HTML page here.")
@click.option("--log", is_flag=True, help="Show what the twins write.")
@options.output("json", help="Print the result so.")
@click.argument("subject", nargs=-1, type=click.UNPROCESSED, metavar="[NAME | A B | -- COMMAND]")
def command(
    trials: int, steps: int | None, timeout: float, remedies: bool, replays: int, other: str | None,
    dump_steps: str | None, in_place: bool, out: Path | None, report_file: Path | None, log: bool, fmt: str | None,
    subject: tuple[str, ...],
) -> None:  # fmt: skip
    """Find where two runs part: step, operation with its line, cause, and a remedy that is tried.

    \b
    foxrun localize -- python train.py
    foxrun localize @latest
    foxrun localize --other "python train.py --resume ckpt.pt" -- python train.py

    COMMAND is any program; a PyTorch script needs no change. Each twin runs in its own copy of the working directory;
    {out} in the command, or FOXRUN_OUT, names a directory of its own. NAME is a drifted pair, run again here.
    Exit codes: 0 no difference in so many runs, 3 found, 5 the program failed, 6 deadline, 7 runs that cannot be
    compared.
    """
    from orchestrator.cli import output
    from orchestrator.localize import interrupts, request
    from orchestrator.localize.result import as_dict
    from orchestrator.localize.session import Listener, Options
    from orchestrator.localize.text import lines

    def line(twin: str, text: str) -> None:
        if log:
            click.echo(f"{twin}: {text}", err=True)

    click.get_current_context().with_resource(interrupts.taken_once())
    directory = Path.cwd()
    output.check_target(report_file, "--report")
    settings = options.current()
    asked = Options(
        trials=trials, timeout_s=timeout, replay_runs=replays, remedies=remedies,
        stop_after=None if steps is None else steps - 1,
        dump_steps=request.steps_of(dump_steps) if dump_steps else None, keep=out is not None,
    )  # fmt: skip
    result = request.localize(
        subject,
        settings=settings,
        options=asked,
        environ=os.environ,
        directory=directory,
        is_command=is_command(subject),
        other=other,
        in_place=in_place,
        out=out,
        engine=lambda: options.engine_of(settings),
        places=options.places(*subject),
        listener=Listener(stage=lambda text: click.echo(f"localize: {text}", err=True), line=line),
    )
    if fmt == "json":
        output.print_json(as_dict(result))
    else:
        for number, text in enumerate(lines(result)):
            click.echo(click.style(text, bold=True) if number == 0 else text)
    if report_file is not None:  # after the result, which a disk that is full by now must not take along
        from orchestrator.report.localization import write

        write(result, report_file)
        if fmt != "json":
            click.echo(f"report: {report_file}")
    raise click.exceptions.Exit(result.exit_code)


def is_command(subject: tuple[str, ...]) -> bool:
    """Whether the words came after `--`: click hides that, so the command line itself is looked at."""
    import sys

    return bool(subject) and "--" in sys.argv and tuple(sys.argv[sys.argv.index("--") + 1 :]) == subject

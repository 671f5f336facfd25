"""``foxrun seeds``."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import options


@click.command("seeds")
@click.option(
    "--of",
    "pairs",
    multiple=True,
    required=True,
    type=(int, click.Path(path_type=Path), click.Path(path_type=Path), str),
    metavar="SEED VERDICT RUN STATUS",
    help="A seed, its pair's verdict.json, leg A's run, how its comparison ended; files may be missing.",
)
@click.option("--verdict", "verdict_file", type=click.Path(path_type=Path), help="Write verdict.json here.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write the HTML report here.")
@click.option("--write", "writes", multiple=True, metavar="NAME=PATH", help="Write verdict, step, leaf, ... to a file.")
@options.output("json", help="Print the verdict so.")
def command(
    pairs: tuple[tuple[int, Path, Path, str], ...], verdict_file: Path | None, report_file: Path | None,
    writes: tuple[str, ...], fmt: str | None,
) -> None:  # fmt: skip
    """Put the verdicts of several seeds into one table, and say what no seed reaches (a sweep calls this).

    \b
    foxrun seeds --of 42 42/verdict.json 42/run Succeeded --of 43 43/verdict.json 43/run Succeeded

    Exits with the worst verdict's code. A seed that changes nothing is named, and so are leaves that no seed reaches.
    """
    from orchestrator import seeds
    from orchestrator.cli import output

    verdict = seeds.sweep_verdict([seeds.OfSeed(seed=s, verdict=f, run=r, status=t) for s, f, r, t in pairs])
    output.write_results(verdict, verdict_file=verdict_file, report_file=report_file, writes=writes)
    output.print_verdict(verdict, fmt=fmt, report=report_file)
    raise click.exceptions.Exit(verdict.exit_code)

"""``foxrun compare``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.cli import options


@click.command("compare")
@click.argument("a", type=options.Run())
@click.argument("b", type=options.Run())
@click.option("--tolerance", type=click.Path(path_type=Path), help="Tolerance file (docs/verdicts.md).")
@click.option("--tolerance-json", metavar="JSON", default="", help="The same as text, as a workflow passes it.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance for checksums, such as 1e-5.")
@click.option("--verify", is_flag=True, help="Also check every file against its own manifest.")
@click.option("--force", is_flag=True, help="Compare even what is incomparable (other seed, tree, hardware, ...).")
@click.option("--allow", multiple=True, metavar="FIELD", help="This may differ, such as tree; may be repeated.")
@click.option(
    "--ignore", multiple=True, metavar="PATTERN", help="Leave out metrics whose name matches; may be repeated."
)
@click.option("--status-a", default="", help="Phase of leg A's node, when a workflow compares.")
@click.option("--status-b", default="", help="Phase of leg B's node, when a workflow compares.")
@click.option("--third", type=options.Run(), help="A third run: on drift it says which of A and B is the odd one out.")
@click.option("--status-c", default="", help="Phase of leg C's node, when a workflow compares.")
@click.option("--verdict", "verdict_file", type=click.Path(path_type=Path), help="Write verdict.json here.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write the HTML report here.")
@click.option(
    "--write",
    "writes",
    multiple=True,
    metavar="NAME=PATH",
    help="Write verdict, step, leaf or pnl-difference to a file.",
)
@options.output("json", help="Print the verdict so.")
def command(
    a: Path | str, b: Path | str, tolerance: Path | None, tolerance_json: str, rtol: float | None, verify: bool,
    force: bool,
    allow: tuple[str, ...], ignore: tuple[str, ...], status_a: str, status_b: str, verdict_file: Path | None,
    report_file: Path | None, writes: tuple[str, ...], fmt: str | None, third: Path | str | None, status_c: str,
) -> None:  # fmt: skip
    """Compare two runs (directories) or two metric files, bit by bit.

    A metric file is JSON lines, JSON or CSV, also .gz or .zst. A and B may lie on S3: then equal runs are told by their
    manifests, and of runs that part only the first block that differs is read (--verify reads everything).

    \b
    foxrun compare runs/a runs/b --report report.html
    foxrun compare a.jsonl b.jsonl --rtol 1e-6 --ignore 'time*'
    foxrun compare s3://bucket/old/leg-a runs/a
    foxrun compare runs/a runs/b --third runs/c

    Exit codes: 0 identical or inside your tolerance, 3 drift, 5 a job failed, 7 incomparable or incomplete.
    """
    from orchestrator import comparison
    from orchestrator.cli import output
    from orchestrator.compare.policy import Options
    from orchestrator.gate import write_termination_log

    output.check_target(report_file, "--report")
    output.check_target(verdict_file, "--verdict")
    chosen = Options(
        tolerance=comparison.read_tolerance(tolerance, tolerance_json, rtol),
        allow=frozenset(allow),
        force=force,
        verify=verify,
        ignore=ignore,
        status_a=status_a,
        status_b=status_b,
    )
    if third is None:
        verdict = comparison.compare(a, b, chosen, places=options.places(a, b))
    else:
        places = options.places(a, b, third)
        verdict = comparison.compare_three(a, b, third, chosen, status_c=status_c, places=places)
    if status_a or status_b:
        write_termination_log(verdict, os.environ)
    output.write_results(verdict, verdict_file=verdict_file, report_file=report_file, writes=writes)
    output.print_verdict(verdict, fmt=fmt, report=report_file)
    raise click.exceptions.Exit(verdict.exit_code)

"""``foxrun report``."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import options


@click.command("report")
@click.argument("subjects", nargs=-1, required=True, metavar="NAME | VERDICT.JSON | A B")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it here.")
@click.option("--open/--no-open", "show", default=False, help="Open it in the browser.  [default: no]")
def command(subjects: tuple[str, ...], out: Path | None, show: bool) -> None:
    """Write the HTML report of a workflow, of a run, or of two runs, and print its path.

    One file, no script, nothing remote. NAME is a completed workflow, the beginning of its name, or @latest; a
    directory or a file is a verdict.json or what holds one; A and B are two runs to compare. All but NAME may be an
    address on S3: a workflow's is s3://bucket/UID.

    \b
    foxrun report @latest
    foxrun report runs/a runs/b --out report.html
    foxrun report s3://bucket/uid/leg-a s3://bucket/uid/leg-b
    """
    from orchestrator.reporting import report

    settings = options.current()
    file = report(
        subjects,
        settings=settings,
        out=out,
        engine=lambda: options.engine_of(settings),
        places=options.places(*subjects),
    )
    click.echo(file)
    if show:
        click.launch(str(file))

"""``foxrun report``."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import options
from orchestrator.settings import Settings


@click.command("report")
@click.argument(
    "subjects",
    nargs=-1,
    required=True,
    metavar="NAME | VERDICT.JSON | A B",
    shell_complete=options.workflows_or_files,
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it here.")
@click.option("--as-note", is_flag=True, help="A dated entry for a record of root causes, as Markdown; --out appends.")
@click.option("--open/--no-open", "show", default=False, help="Open it in the browser.  [default: no]")
def command(subjects: tuple[str, ...], out: Path | None, as_note: bool, show: bool) -> None:
    """Write the HTML report of a workflow, of a run, or of two runs, and print its path.

    One file, no script, nothing remote. NAME is a completed workflow, the beginning of its name, or @latest; a
    directory or a file is a verdict.json or what holds one; A and B are two runs to compare. All but NAME may be an
    address on S3: a workflow's is s3://bucket/UID.

    \b
    foxrun report @latest
    foxrun report runs/a runs/b --out report.html
    foxrun report s3://bucket/uid/leg-a s3://bucket/uid/leg-b
    """
    from orchestrator.cli import output
    from orchestrator.reporting import report

    settings = options.current()
    if as_note:
        return _write_note(subjects, settings, out)
    output.check_target(out, "--out")
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


def _write_note(subjects: tuple[str, ...], settings: Settings, out: Path | None) -> None:
    from datetime import UTC, datetime

    from orchestrator.report.note import note
    from orchestrator.reporting import verdict_of

    verdict, _ = verdict_of(
        subjects, settings=settings, engine=lambda: options.engine_of(settings), places=options.places(*subjects)
    )
    text = note(verdict, date=datetime.now(UTC).strftime("%Y-%m-%d"))
    if out is None:
        click.echo(text, nl=False)
        return
    with out.open("a", encoding="utf-8") as stream:
        stream.write(("\n" if out.stat().st_size else "") + text)
    click.echo(out)

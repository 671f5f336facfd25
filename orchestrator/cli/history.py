"""``foxrun history``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from orchestrator.cli import options


@click.command("history")
@click.option("--branch", "branches", multiple=True, metavar="PATTERN", help="Of these branches, as ml-alpha-*.")
@click.option("--kind", "kinds", multiple=True, metavar="PATTERN", help="Of these workflows, as nightly.")
@click.option("--only", "verdicts", multiple=True, metavar="VERDICT", help="With these verdicts, as drift.")
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, help="How many; 0: all.")
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all that match as one page here.",
)
@click.option("--title", default="", help="Of the page.")
@options.output("json", help="Print the entries so.")
def command(
    branches: tuple[str, ...], kinds: tuple[str, ...], verdicts: tuple[str, ...], limit: int, html_file: Path | None,
    title: str, fmt: str | None,
) -> None:  # fmt: skip
    """List what workflows came to, deleted ones too, the newest first; or draw all as one page.

    \b
    foxrun history --branch 'ml-alpha-*' --only drift
    foxrun history --kind nightly --html history.html

    Every workflow leaves one small entry when it ends, on either engine.
    """
    from foxrun.files import write_atomic
    from orchestrator.cli.output import coloured, parent, print_json, table
    from orchestrator.history import entries as h
    from orchestrator.history import page, reading
    from orchestrator.printable import printable
    from orchestrator.settings import home_directory

    settings = options.current()
    all_of = reading.read(options.engine_of(settings), home_directory(settings))
    found = h.newest_first(h.chosen(all_of, branches=branches, kinds=kinds, verdicts=verdicts))
    if html_file is not None:
        parent(html_file)
        write_atomic(html_file, page.render(found, title=title))
        click.echo(f"{html_file}")
        return
    shown = found[:limit] if limit else found
    if fmt == "json":
        return print_json([dataclasses.asdict(entry) for entry in shown])
    if not shown:
        click.echo("no workflow matches" if all_of else "no workflow has ended yet", err=True)
        return
    rows = [["ENDED", "BRANCH", "COMMIT", "KIND", "SEED", "VERDICT", "STEP", "LEAF", "NAME"]]
    for e in shown:
        seed = "-" if e.seed is None else str(e.seed)
        cells = [e.finished[:16], e.branch or "-", e.sha[:7] or "-", e.kind or "-", seed]
        rows.append(
            [
                *map(printable, cells),
                coloured(e.verdict, printable(e.verdict)),
                *map(printable, (e.step or "-", e.leaf or "-", e.name)),
            ]
        )
    table(rows)
    if len(found) > len(shown):
        click.echo(f"{len(found) - len(shown)} more: --limit 0", err=True)

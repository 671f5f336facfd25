"""How results are printed: text for people on stdout, JSON or YAML for scripts, and files for a workflow's outputs."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import UsageError

COLOURS = {
    "Succeeded": "green", "identical": "green", "succeeded": "green", "within_tolerance": "yellow", "Running": "cyan",
    "Pending": "yellow", "Failed": "red", "Error": "red",
}  # fmt: skip


def coloured(word: str, text: str | None = None) -> str:
    """A phase or a verdict in its colour; click takes the colour away where nobody sees it."""
    return click.style(text or word, fg=COLOURS.get(word, "red" if word in v.EXIT_CODES else None))


def print_json(value: Any) -> None:
    """One JSON document, non-finite floats as strings; what a terminal would obey is escaped as JSON has it."""
    from foxrun.jsonio import pretty

    click.echo(
        re.sub("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]", lambda m: f"\\u{ord(m[0]):04x}", pretty(value)), nl=False
    )


def print_yaml(value: dict[str, Any]) -> None:
    """One YAML document that every parser reads alike."""
    from workflows.render import to_yaml

    click.echo(to_yaml(value), nl=False)


def table(rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; nothing is cut, so that a script may read it."""
    cells = [list(row) for row in rows]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        padded = [cell + " " * (width - len(click.unstyle(cell))) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(padded).rstrip())


def print_verdict(verdict: Verdict, *, fmt: str | None, report: Path | None = None, **extra: Any) -> None:
    """The verdict as lines, or as JSON with ``extra`` beside its own fields."""
    if fmt == "json":
        print_json({**v.as_dict(verdict), **extra, **({"report": str(report)} if report else {})})
        return
    first, *rest = v.lines(verdict)
    word, separator, message = first.partition(":")
    click.echo(click.style(coloured(word), bold=True) + separator + message)
    for line in rest:
        click.echo(line)
    if report is not None:
        click.echo(f"report: {report}")


def write_results(
    verdict: Verdict, *, verdict_file: Path | None, report_file: Path | None, writes: Sequence[str]
) -> None:
    """verdict.json, report.html and the output parameters of a workflow's part, each atomically.

    Raises:
        click.BadParameter: ``--write`` names something that a verdict does not have.
    """
    from foxrun.files import write_atomic
    from foxrun.jsonio import pretty

    values = {
        "verdict": verdict.verdict,
        "step": str(verdict.first_divergence.step) if verdict.first_divergence else "-",
        "leaf": verdict.first_divergence.leaf if verdict.first_divergence else "-",
        "pnl-difference": _pnl_difference(verdict),
    }
    for item in writes:
        name, separator, file = item.partition("=")
        if not separator or name not in values:
            raise click.BadParameter(
                f"{item!r}: write NAME=PATH, NAME one of {', '.join(values)}", param_hint="--write"
            )
        parent(Path(file))
        write_atomic(Path(file), values[name])
    if verdict_file is not None:
        parent(verdict_file)
        # By which Argo serves the report that lies beside it: the exit handler makes its link of that.
        node = os.environ.get("ARGO_NODE_ID", "")
        write_atomic(verdict_file, pretty({**v.as_dict(verdict), **({v.NODE: node} if node else {})}))
    if report_file is not None:
        from orchestrator.report import render
        from orchestrator.runnable import outside, workflow_of_pod

        parent(report_file)
        then = outside(verdict.next, workflow_of_pod(os.environ))
        write_atomic(report_file, render(dataclasses.replace(verdict, next=then)))


def check_target(file: Path | None, option: str) -> None:
    """Look whether a result can be written there, before the work that it would be lost with; folders are made later.

    Raises:
        UsageError: it cannot.
    """
    if file is None:
        return
    try:
        what = _in_the_way(file)
    except OSError as error:
        raise UsageError(f"{option} {file} cannot be written: {error.strerror}", remedy="name another place") from None
    if what:
        example = file / "report.html" if file.is_dir() else "report.html"
        raise UsageError(f"{option} {file} {what}", remedy=f"name a file, for example: {option} {example}")


def _in_the_way(file: Path) -> str:
    """What keeps a file from having this name; "" where nothing does. Raises OSError: its folder takes no file."""
    import tempfile

    from foxrun.files import replaceable

    if file.is_dir():
        return "is a directory"
    if not replaceable(file):
        return "is no regular file"
    tempfile.TemporaryFile(dir=next(place for place in file.absolute().parents if place.exists())).close()
    return ""


def parent(file: Path) -> None:
    """Make the folder that a file is to lie in."""
    file.absolute().parent.mkdir(parents=True, exist_ok=True)


def _pnl_difference(verdict: Verdict) -> str:
    for row in verdict.outcome:
        if row.key == "total_pnl_usd":
            return "-" if row.delta is None else repr(row.delta)
    return "-"

"""Finds or makes the verdict that a person wants to see, and writes its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from orchestrator import comparison
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import UsageError
from orchestrator.following import judge, write_report
from orchestrator.lookup import full_name
from orchestrator.outcome import is_completed
from orchestrator.places import FILE, Places, is_remote
from orchestrator.settings import Settings, home_directory

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

VERDICT = "verdict.json"


def report(
    subjects: Sequence[str],
    *,
    settings: Settings,
    out: Path | None,
    engine: Callable[[], Engine],
    places: Places | None = None,
) -> Path:
    """Write the report of a workflow, of what holds a verdict, or of two runs, here or on S3; returns its path.

    Raises:
        UsageError: nothing there that a report can be made of.
    """
    verdict, name = verdict_of(subjects, settings=settings, engine=engine, places=places)
    usual = home_directory(settings) / "reports" / f"{name}.html" if name else Path("report.html")
    return write_report(verdict, out or usual).absolute()


def verdict_of(
    subjects: Sequence[str], *, settings: Settings, engine: Callable[[], Engine], places: Places | None = None
) -> tuple[Verdict, str]:
    """The verdict of a workflow, of what holds one, or of two runs; and the workflow's name where it is one.

    Raises:
        UsageError: nothing there that has a verdict.
    """
    if len(subjects) > 2:
        raise UsageError(
            f"a report is of one workflow or of two runs, not of {len(subjects)}", remedy="give one or two"
        )
    if len(subjects) == 2:
        return comparison.compare(subjects[0], subjects[1], places=places), ""
    if is_remote(subjects[0]):
        return _of_address(subjects[0], places or Places(settings)), ""
    path = Path(subjects[0])
    if path.exists():
        return _of_path(path), ""
    there = engine()
    name = full_name(there, subjects[0])
    workflow = there.get(name)
    if not is_completed(workflow):
        raise UsageError(f"workflow {name} is not completed", remedy=f"foxrun watch {name} writes it at the end")
    return judge(there, workflow), name


def _of_path(path: Path) -> Verdict:
    file = path / VERDICT if path.is_dir() else path
    if file.is_file():
        return comparison.read_verdict(file)
    if (sides := Places().pair_below(path)) is not None:
        return comparison.compare(*sides)
    raise UsageError(
        f"{path} holds neither a verdict.json nor two runs", remedy="give two runs to compare: foxrun report A B"
    )


def _of_address(address: str, places: Places) -> Verdict:
    """The verdict of a workflow's prefix on S3, of a prefix that holds two runs, or of a verdict.json there."""
    address = address.rstrip("/")
    found = places.find(address)
    if found.kind == FILE:
        return _read(found.open, address)
    names = found.run.list() if not isinstance(found.run, Path) else {}
    if VERDICT in names:
        return _read(places.find(f"{address}/{VERDICT}").open, f"{address}/{VERDICT}")
    if (sides := places.pair_below(address)) is not None:
        return comparison.compare(*sides, places=places)
    what = "holds neither a verdict.json nor two runs" if names else "nothing is stored there"
    raise UsageError(f"{address}: {what}", remedy="give two runs to compare: foxrun report A B")


def _read(open_: Callable[[], BinaryIO], label: str) -> Verdict:
    with open_() as stream:
        return comparison.parse_verdict(stream.read(), label)

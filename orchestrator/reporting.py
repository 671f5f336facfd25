"""Finds or makes the verdict that a person wants to see, and writes its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import comparison
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import UsageError
from orchestrator.following import judge, write_report
from orchestrator.lookup import full_name
from orchestrator.outcome import is_completed
from orchestrator.settings import Settings, home_directory

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

_PAIRS = (("twin1", "twin2"), ("a", "b"))


def report(subjects: Sequence[str], *, settings: Settings, out: Path | None, engine: Callable[[], Engine]) -> Path:
    """Write the report of a workflow, of what holds a verdict, or of two runs; returns its path.

    Raises:
        UsageError: nothing there that a report can be made of.
    """
    if len(subjects) > 2:
        raise UsageError(
            f"a report is of one workflow or of two runs, not of {len(subjects)}", remedy="give one or two"
        )
    if len(subjects) == 2:
        verdict = comparison.compare(Path(subjects[0]), Path(subjects[1]))
        return write_report(verdict, out or Path("report.html")).absolute()
    path = Path(subjects[0])
    if path.exists():
        return write_report(_of_path(path), out or Path("report.html")).absolute()
    there = engine()
    name = full_name(there, subjects[0])
    workflow = there.get(name)
    if not is_completed(workflow):
        raise UsageError(f"workflow {name} is not completed", remedy=f"foxrun watch {name} writes it at the end")
    return write_report(judge(there, workflow), out or home_directory(settings) / "reports" / f"{name}.html").absolute()


def _of_path(path: Path) -> Verdict:
    file = path / "verdict.json" if path.is_dir() else path
    if file.is_file():
        return comparison.read_verdict(file)
    for a, b in _PAIRS:
        if (path / a).is_dir() and (path / b).is_dir():
            return comparison.compare(path / a, path / b)
    raise UsageError(
        f"{path} holds neither a verdict.json nor two runs", remedy="give two runs to compare: foxrun report A B"
    )

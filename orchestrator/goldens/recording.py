"""Use case of `golden record`: the trainer is run twice here, and when both agree its bits are kept."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from foxrun.reader import open_run
from foxrun.run import Run
from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import UsageError
from orchestrator.goldens import golden as g
from orchestrator.goldens.taking import golden_of, steps_of

FIRST = "first recording"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The verdict of the twins, and where they agreed the golden and ``what`` became of it."""

    verdict: Verdict
    file: Path | None = None
    what: str = ""


def record(verdict: Verdict, run_directory: Path, folder: Path, *, reason: str, commit: str) -> Recorded:
    """Keep the bits of a twin whose gate found ``identical``.

    Args:
        verdict: the gate's; any other than ``identical`` records nothing.
        run_directory: the first twin's output.
        folder: where goldens lie.
        reason: why these are the right bits; needed when there is a golden with others.
        commit: that was run, empty for files as they are.

    Raises:
        UsageError: the bits changed and nobody said why.
        ContractError: the run cannot become a golden (mode 0, no fingerprints).
    """
    if verdict.verdict != v.IDENTICAL:
        return Recorded(verdict=verdict)
    run = open_run(run_directory)
    taken = golden_of(run, steps_of(run))
    file = folder / taken.key.file_name()
    before = g.read(file) if file.is_file() else None
    if before is not None and _same(before, taken):
        return Recorded(verdict=verdict, file=file, what="unchanged: these are the bits that it holds already")
    if before is not None and not reason:
        why = before.recordings[-1].reason if before.recordings else "-"
        raise UsageError(
            f"{file.name} holds other bits, recorded because: {why}",
            remedy="say why they change: --reason TEXT; foxrun golden check shows what changed",
        )
    recording = g.Recording(
        date=datetime.now(UTC).strftime("%Y-%m-%d"), commit=commit, tree=_tree(run), reason=reason or FIRST
    )
    history = (*(before.recordings if before is not None else ()), recording)
    g.write(folder, dataclasses.replace(taken, recordings=history))
    changed = f"changed ({_changes(before, taken)})" if before is not None else "new"
    return Recorded(verdict=verdict, file=file, what=changed)


def _same(before: g.Golden, taken: g.Golden) -> bool:
    return (before.steps, before.rows_sha256, before.leaves) == (taken.steps, taken.rows_sha256, taken.leaves)


def _changes(before: g.Golden, taken: g.Golden) -> str:
    if before.steps != taken.steps:
        return f"{before.steps} steps became {taken.steps}"
    old = {leaf.name: leaf for leaf in before.leaves}
    count = sum(old.get(leaf.name) != leaf for leaf in taken.leaves)
    return f"{count} of {len(taken.leaves)} leaves"


def _tree(run: Run) -> str:
    return str(((run.manifest or {}).get("code") or {}).get("tree_run") or "")

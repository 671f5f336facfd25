"""open_run: the run in a run directory, or the attempt that counts in an out directory."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from foxrun import schema
from foxrun.problems import ContractError, Problem
from foxrun.rows import Row
from foxrun.run import COMPRESSED, Run
from foxrun.sources import DirectorySource, Source, SubSource

__all__ = ["DirectorySource", "Row", "Run", "Source", "open_run"]

_MARKS = (schema.MANIFEST, schema.DIAG, schema.LEAVES, schema.BITS, schema.SUMMARY)

_DEEPEST = 2


def open_run(where: Path | str | Source, *, lazy: bool = False) -> Run:
    """Open a run directory, or an out directory with one complete attempt in it.

    Of several complete attempts the one finished last (by its manifest) is taken, with a note; of none, the largest
    incomplete one, with its problems. ``lazy``: as :class:`Run` has it. Raises ContractError when there is no such
    directory or no run in it.
    """
    try:
        if isinstance(where, (str, os.PathLike)):
            label = str(where)
            attempts, empty = _attempts_in_directory(Path(where), lazy)
        else:
            label = where.label
            attempts, empty = _attempts_in_source(where, lazy)
    except OSError as error:
        raise ContractError(f"cannot be listed: {error}", file=str(where), remedy="check its permissions") from None
    if not attempts:
        what = "is empty: no run was written" if empty else f"holds no run: none of {', '.join(_MARKS)} is there"
        remedy = "see the trainer's log; a run directory is what --out of the trainer names"
        raise ContractError(what, file=label, remedy=remedy)
    if len(attempts) == 1:
        return attempts[0]
    complete = [run for run in attempts if run.complete]
    if complete:
        chosen = max(complete, key=lambda run: (_finished(run), run.run_id))
    else:
        chosen = max(attempts, key=lambda run: (sum(run.files.values()), run.run_id))
    others = ", ".join(run.run_id for run in attempts if run is not chosen)
    why = "finished last" if complete else "none is complete, it holds most"
    what = f"{len(attempts)} attempts, {len(complete)} complete: {chosen.run_id} is read ({why}), not {others}"
    chosen.problems.append(Problem(label, None, what, "name one run directory to read another", fatal=False))
    return chosen


def _attempts_in_directory(path: Path, lazy: bool) -> tuple[list[Run], bool]:
    """The runs in a directory, and whether it is empty. Looks two levels deep: it may be any directory."""
    if not path.exists():
        raise ContractError("there is no such directory", file=str(path), remedy="check the path")
    if not path.is_dir():
        remedy = f"give the directory that holds {schema.DIAG}"
        raise ContractError("is a file, not a run directory", file=str(path), remedy=remedy)
    names = sorted(entry.name for entry in path.iterdir())
    if _is_run(names):
        return [Run(DirectorySource(path), lazy=lazy)], False
    attempts = []
    for name in names:
        inside = path / name
        if (
            inside.is_dir()
            and os.access(inside, os.R_OK | os.X_OK)
            and _is_run({entry.name for entry in inside.iterdir()})
        ):
            attempts.append(Run(DirectorySource(inside), lazy=lazy))
    return attempts, not names


def _attempts_in_source(source: Source, lazy: bool) -> tuple[list[Run], bool]:
    """The same of a source; two levels deep, since a store keeps the attempts of a leg by pod and run id."""
    listing = source.list()
    if _is_run(listing):
        return [Run(source, lazy=lazy)], False
    below: dict[str, dict[str, int]] = {}
    for name, size in listing.items():
        parts = name.split("/")
        for depth in range(1, min(len(parts) - 1, _DEEPEST) + 1):
            below.setdefault("/".join(parts[:depth]) + "/", {})["/".join(parts[depth:])] = size
    attempts: list[Run] = []
    taken: list[str] = []
    for prefix, inside in sorted(below.items()):
        if _is_run(inside) and not prefix.startswith(tuple(taken)):
            taken.append(prefix)
            attempts.append(Run(SubSource(source, prefix, inside), lazy=lazy))
    return attempts, not listing


def _is_run(listing: Container[str]) -> bool:
    return any(mark + ending in listing for mark in _MARKS for ending in COMPRESSED)


def _finished(run: Run) -> str:
    times = (run.manifest or {}).get("times")
    finished = times.get("finished") if isinstance(times, dict) else None
    return finished if isinstance(finished, str) else ""

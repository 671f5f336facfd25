"""A copy of the working directory for each twin, so that neither reads what the other wrote and nothing here changes.

Paths that lead out of it (../data) still lead there: the copy stands in a copy of the path, with links beside it.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from foxrun.files import entries_of, sha256_file

# Linked, not copied: read as they are, or large, or both.
LINKED = (".git", ".hg", ".svn", "node_modules", ".tox", ".nox", ".mypy_cache", ".ruff_cache")
LARGE = 64 * 1024 * 1024
MOST_FILES, MOST_BYTES, MOST_BESIDE = 20_000, 1024**3, 2000


@dataclass(frozen=True, kw_only=True)
class Copied:
    """Where the twin runs, and which large files it shares with the original."""

    directory: Path
    linked: tuple[str, ...] = ()


class TooLarge(Exception):
    """More than MOST_FILES files or MOST_BYTES bytes would have to be copied."""


def measure(directory: Path) -> None:
    """Raises TooLarge when copying would take more than its limits."""
    files = size = 0
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not _is_linked(Path(folder) / name))
        for name in names:
            stat = (Path(folder) / name).lstat()
            files += 1
            size += stat.st_size if stat.st_size < LARGE else 0
        if files > MOST_FILES or size > MOST_BYTES:
            raise TooLarge(f"{directory} holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MB")


def copy(directory: Path, into: Path) -> Copied:
    """Copy ``directory`` below ``into``; large files, repositories and environments become links to the originals."""
    directory = directory.resolve()
    place = into / "root"
    place.mkdir(parents=True)
    for part in directory.parts[1:-1]:
        place = place / part
        place.mkdir()
    _link_beside(directory, into / "root")
    linked: list[str] = []
    target = place / directory.name if directory.name else into / "root" / "cwd"
    _copy_tree(directory, target, directory, linked, into.resolve())
    return Copied(directory=target, linked=tuple(sorted(linked)))


def _link_beside(directory: Path, root: Path) -> None:
    """Every other entry of each folder above, as a link, so that ``../x`` is the same file; / itself is left out."""
    for above in list(directory.parents)[:-1]:
        copied = root.joinpath(*above.parts[1:])
        try:
            entries = sorted(above.iterdir())[:MOST_BESIDE]
        except OSError:
            continue
        for entry in entries:
            there = copied / entry.name
            if not there.exists() and not directory.is_relative_to(entry):
                there.symlink_to(entry)


def _is_linked(path: Path) -> bool:
    return path.is_symlink() or path.name in LINKED or (path / "pyvenv.cfg").is_file()


def _copy_tree(source: Path, target: Path, top: Path, linked: list[str], into: Path) -> None:
    target.mkdir(exist_ok=True)
    for entry in entries_of(source):
        path, there = Path(entry.path), target / entry.name
        if into.is_relative_to(path):
            continue  # the copies themselves lie in there
        if entry.is_symlink():
            # A link inside the tree keeps meaning the copy; one that leads out keeps its file.
            goal = path.resolve()
            inside = goal.is_relative_to(top)
            there.symlink_to(os.path.relpath(goal, path.parent.resolve()) if inside else goal)
        elif entry.is_dir():
            if _is_linked(path):
                there.symlink_to(path)
            elif entry.name != "__pycache__":
                _copy_tree(path, there, top, linked, into)
        elif entry.is_file():
            if entry.stat().st_size >= LARGE:
                there.symlink_to(path)
                linked.append(str(path.relative_to(top)))
            else:
                shutil.copy2(path, there)


def written(copied: Path, original: Path) -> dict[str, str]:
    """Files in the copy that the original does not hold so: relative path -> sha256."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(copied):
        folders[:] = sorted(name for name in folders if not _is_linked(Path(folder) / name) and name != "__pycache__")
        for name in sorted(names):
            file = Path(folder) / name
            relative = file.relative_to(copied)
            if file.is_symlink() or not file.is_file():
                continue
            before = original / relative
            mine = sha256_file(file)
            if not before.is_file() or before.stat().st_size != file.stat().st_size or sha256_file(before) != mine:
                found[str(relative)] = mine
    return found

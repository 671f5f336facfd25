"""A copy of the working directory for each twin, so that neither reads what the other wrote and nothing here changes.

Paths that lead out of it (../data) still lead there: the copy stands in a copy of the path, with links beside it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from foxrun.files import entries_of, sha256_file
from orchestrator.errors import NoPlace

# A folder with this file is a localisation's own: what it holds is no input, and another's traces change meanwhile.
MARK = ".foxrun-localize"
# Linked, not copied: read as they are, or large, or both.
LINKED = (".git", ".hg", ".svn", "node_modules", ".tox", ".nox", ".mypy_cache", ".ruff_cache")
LARGE = 64 * 1024 * 1024
ATTEMPTS = 5
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
        folders[:] = sorted(name for name in folders if not _left_out(Path(folder) / name))
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # somebody else writes here as well
                stat = (Path(folder) / name).lstat()
                files += 1
                size += stat.st_size if stat.st_size < LARGE else 0
        if files > MOST_FILES or size > MOST_BYTES:
            raise TooLarge(f"{directory} holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MB")


def mark(folder: Path) -> None:
    """Make a folder, where there is none, and leave it out of every copy."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def must_be_there(directory: Path) -> None:
    """Raises NoPlace when the working directory is gone."""
    if not directory.is_dir():
        raise NoPlace(f"the working directory {directory} is gone", remedy="make it again, or go to another one (cd)")


def copy(directory: Path, into: Path) -> Copied:
    """Copy ``directory`` below ``into``; large files, repositories and environments become links to the originals.

    Raises NoPlace when the directory is gone.
    """
    must_be_there(directory)
    directory = directory.resolve()
    place = into / "root"
    place.mkdir(parents=True)
    for part in directory.parts[1:-1]:
        place = place / part
        place.mkdir()
    _link_beside(directory, into / "root")
    linked: list[str] = []
    target = place / directory.name if directory.name else into / "root" / "cwd"
    _copy_tree(directory, target, directory, linked)
    return Copied(directory=target, linked=tuple(sorted(set(linked))))


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


def _is_own(path: Path) -> bool:
    return (path / MARK).is_file()


def _left_out(path: Path) -> bool:
    return _is_linked(path) or _is_own(path)


def _copy_tree(source: Path, target: Path, top: Path, linked: list[str]) -> None:
    entries = entries_of(source)
    target.mkdir(exist_ok=True)
    for entry in entries:
        _copy_if_there(entry, target / entry.name, top, linked)


def _copy_if_there(entry: os.DirEntry[str], there: Path, top: Path, linked: list[str]) -> None:
    """Copy an entry, unless it is gone since it was listed: a logger's old file, or another training's temporary one.

    One that is made and removed again and again may be there when it is looked at and gone when it is read.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            return _copy_entry(entry, there, top, linked)
        except (FileNotFoundError, NotADirectoryError):
            if there.is_dir() and not there.is_symlink():
                shutil.rmtree(there)
            else:
                there.unlink(missing_ok=True)
            if not os.path.lexists(entry.path):
                return None
            if not left:
                raise
    return None


def _copy_entry(entry: os.DirEntry[str], there: Path, top: Path, linked: list[str]) -> None:
    path = Path(entry.path)
    if entry.is_symlink():
        there.symlink_to(_meant(path, top))
    elif entry.is_dir():
        if _is_linked(path):
            there.symlink_to(path)
        elif entry.name != "__pycache__" and not _is_own(path):
            _copy_tree(path, there, top, linked)
    elif entry.is_file():
        if entry.stat().st_size >= LARGE:
            there.symlink_to(path)
            linked.append(str(path.relative_to(top)))
        else:
            shutil.copy2(path, there)


def _meant(link: Path, top: Path) -> Path | str:
    """Where its copy leads: a link inside the tree keeps meaning the copy; one that leads out keeps its file."""
    try:
        goal = link.resolve()
    except (RuntimeError, OSError):  # it leads to itself
        return link.readlink()
    return os.path.relpath(goal, link.parent.resolve()) if goal.is_relative_to(top) else goal


def written(copied: Path, original: Path, since: Path) -> dict[str, str]:
    """Files in the copy that the original does not hold so: relative path -> sha256.

    ``since``: a file that was made after the copy and before the program began, on the same disk.
    """
    found: dict[str, str] = {}
    began_ns = since.stat().st_ctime_ns
    for folder, folders, names in os.walk(copied):
        folders[:] = sorted(name for name in folders if not _left_out(Path(folder) / name) and name != "__pycache__")
        for name in sorted(names):
            file = Path(folder) / name
            relative = file.relative_to(copied)
            if file.is_symlink() or not file.is_file():
                continue
            mine = sha256_file(file)
            if not _holds(original / relative, file, mine) and not _outdated(file, original / relative, began_ns):
                found[str(relative)] = mine
    return found


def _holds(before: Path, file: Path, mine: str) -> bool:
    try:
        return before.is_file() and before.stat().st_size == file.stat().st_size and sha256_file(before) == mine
    except FileNotFoundError:
        return False


def _outdated(file: Path, before: Path, began_ns: int) -> bool:
    """Whether the original changed since it was copied (a log that grows), and the copy did not.

    A file that is written through memory may keep its times, so an original with the same ones changed nothing.
    """
    mine = file.stat()
    try:
        other = before.stat()
    except OSError:
        return mine.st_ctime_ns < began_ns
    return mine.st_ctime_ns < began_ns and (mine.st_mtime_ns, mine.st_size) != (other.st_mtime_ns, other.st_size)

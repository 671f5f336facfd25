"""The line of source that an event names, where it can be read, and remedies that name it."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from orchestrator.localize import set_iteration
from orchestrator.localize.result import Operation, Remedy
from orchestrator.printable import printable

_WHERE = re.compile(r"(?P<file>.*?):(?P<line>\d+)(?: (?P<function>.*))?\Z")
LONGEST = 160
MOST_FOLDERS, SKIPPED = 2000, ("__pycache__", "node_modules", "site-packages", "build", "tests")


def parts(where: str) -> tuple[str, int] | None:
    """File and line of "file.py:31 function"."""
    found = _WHERE.match(where)
    return (found["file"], int(found["line"])) if found else None


def line_of(where: str, header: Mapping[str, Any], directory: Path | None = None) -> str:
    """The text of the line; empty where the file is not found here."""
    place = parts(where)
    lines = _file(where, header, directory)
    number = place[1] if place is not None else 0
    return printable(lines[number - 1].strip()[:LONGEST]) if 0 < number <= len(lines) else ""


def code_of(where: str, header: Mapping[str, Any], directory: Path | None = None) -> list[str]:
    """All lines of the file, without comments of Python or of C within it and without the docstring at its head."""
    lines = [line.strip() for line in _file(where, header, directory)]
    body = "\n".join(
        line for line in lines if line.startswith("#pragma") or not line.startswith(("#", "//", "*", "/*"))
    )
    return re.sub(r'\A(?:[rR]?"""(?s:.*?)""")', "", body).splitlines()


def set_walks(places: Sequence[str], header: Mapping[str, Any], directory: Path | None = None) -> list[str]:
    """Where the files of these places walk through a set, the nearest first: ``file.py:31 (`for x in s:`)``.

    A file's name is that of the place; each file is looked through once, for the first place in it.
    """
    found: dict[str, list[str]] = {}
    for place in filter(None, map(parts, places)):
        file, near = place
        if file not in found:
            lines = _file(f"{file}:{near}", header, directory)
            numbers = set_iteration.lines(lines, near)
            found[file] = [f"{file}:{n} (`{printable(lines[n - 1].strip()[:LONGEST])}`)" for n in numbers]
    return [text for texts in found.values() for text in texts]


def _file(where: str, header: Mapping[str, Any], directory: Path | None) -> list[str]:
    place = parts(where)
    if place is None:
        return []
    candidates = [folder / place[0] for folder in _folders(header, directory)]
    for candidate in [*candidates, *_below(directory or Path.cwd(), place[0])]:
        try:
            if candidate.is_file():
                return candidate.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
    return []


def around(where: str, header: Mapping[str, Any], directory: Path | None = None, far: int = 3) -> list[str]:
    """The line and its neighbours, stripped; empty where the file is not found here."""
    place = parts(where)
    if place is None:
        return []
    file, number = place
    found = [line_of(f"{file}:{n}", header, directory) for n in range(max(1, number - far), number + far + 1)]
    return [line for line in found if line]


@lru_cache(maxsize=256)
def _below(directory: Path, file: str) -> tuple[Path, ...]:
    """The only file of that name in the program's own directory, where it is no file of the directory itself."""
    found: list[Path] = []
    for number, (folder, folders, names) in enumerate(os.walk(directory)):
        if number > MOST_FOLDERS:
            return ()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        if Path(file).name in names and (place := Path(folder) / Path(file).name).as_posix().endswith(f"/{file}"):
            found.append(place)
    return tuple(found) if len(found) == 1 else ()


def _folders(header: Mapping[str, Any], directory: Path | None) -> list[Path]:
    import sysconfig

    folders = [directory or Path.cwd()]
    words = [word for word in header.get("argv") or [] if isinstance(word, str)]
    for before, word in zip(["", *words], words, strict=False):
        if word.endswith(".py"):
            folders.append((folders[0] / word).parent)
        elif before == "-m":
            folders += [folders[0] / Path(*word.split(".")), (folders[0] / Path(*word.split("."))).parent]
    folders += [Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib", "stdlib")]
    return folders


def with_lines(remedies: Sequence[Remedy], operation: Operation | None) -> list[Remedy]:
    """The remedies, with the origin's line quoted in their text."""
    if operation is None:
        return list(remedies)
    quoted = f"{operation.where}" + (f" (`{operation.source}`)" if operation.source else "")
    return [
        dataclasses.replace(
            item, text=item.text.replace("{where}", quoted or "the origin").replace("{name}", operation.name)
        )
        for item in remedies
    ]

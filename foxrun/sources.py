"""Where a run lives: a directory, or a part of another source. An object store is one more class of this shape."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from foxrun import schema
from foxrun.problems import ContractError


class Source(Protocol):
    """Where a run lives: a directory here, an object store elsewhere. Names are relative, with '/' between parts."""

    label: str

    def list(self) -> dict[str, int]:
        """Every file with its size in bytes, by one listing."""
        ...

    def open(self, name: str) -> BinaryIO:
        """The stored bytes of a file; OSError when it is gone."""
        ...

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Bytes start..end-1; fewer at the end of the file."""
        ...


class DirectorySource:
    """A run in a directory. Links that lead out of it, and anything that is not a file, are not part of it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.label = str(path)

    def list(self) -> dict[str, int]:
        """Every regular file below the directory with its size, by name."""
        found: dict[str, int] = {}
        root = self.path.resolve()

        def inside(path: str) -> bool:
            return Path(path).resolve().is_relative_to(root)

        def walk(directory: Path, prefix: str) -> None:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        walk(Path(entry.path), name + "/")
                    elif entry.is_file() and (not entry.is_symlink() or inside(entry.path)):
                        with contextlib.suppress(FileNotFoundError):  # a temporary file, renamed meanwhile
                            found[name] = entry.stat().st_size

        walk(self.path, "")
        return dict(sorted(found.items()))

    def open(self, name: str) -> BinaryIO:
        """The file, unbuffered: callers read in large pieces."""
        return cast(BinaryIO, self._within(name).open("rb", buffering=0))

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Bytes start..end-1 of a file."""
        with self._within(name).open("rb") as stream:
            stream.seek(start)
            return stream.read(max(0, end - start))

    def _within(self, name: str) -> Path:
        if trouble := schema.path_problem(name):
            raise ContractError(f"{name!r} {trouble}", file=self.label, remedy="name a file of the run directory")
        return self.path / name


class SubSource:
    """One directory of a source, as a source."""

    def __init__(self, source: Source, prefix: str, listing: dict[str, int]) -> None:
        self._source = source
        self._prefix = prefix
        self._listing = listing
        self.label = f"{source.label.rstrip('/')}/{prefix.rstrip('/')}"

    def list(self) -> dict[str, int]:
        """The part of the listing that was taken when the source was made."""
        return self._listing

    def open(self, name: str) -> BinaryIO:
        """As the source does it."""
        return self._source.open(self._prefix + name)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """As the source does it."""
        return self._source.read_range(self._prefix + name, start, end)

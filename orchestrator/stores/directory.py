"""Artifacts in a directory, by key; inputs under their sha256, read-only, stored once.

A key is a relative path with forward slashes, as in S3, and never leads out of the directory. Everything appears
whole or not at all: it is written beside its place and renamed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from foxrun.files import entries_of
from orchestrator.errors import InfrastructureError, UsageError

_CHUNK = 1 << 20


class UnsafePath(UsageError):
    """An artifact leads out of its root, or is neither file, directory nor link."""


class DirectoryStore:
    """A store of artifacts under one directory, which is made when it is first written to."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, key: str) -> Path:
        """Return where a key lies, whether it exists or not. Raises UnsafePath for a key that leaves the store."""
        parts = PurePosixPath(key).parts
        if not parts or key.startswith("/") or ".." in parts or "\0" in key:
            raise UnsafePath(f"artifact key {key!r} is not a relative path inside the store")
        return self.root.joinpath(*parts)

    def exists(self, key: str) -> bool:
        """Return whether something is stored under the key."""
        return self.path(key).exists()

    def put_input(self, source: Path) -> str:
        """Store a file under its content's sha256 and return the key `inputs/<sha256>/<file name>`.

        A file that is stored already costs one reading. Raises UsageError when it is no readable file.
        """
        checked_input(source)
        try:
            digest = _sha256(source)
        except OSError as error:
            raise UsageError(f"input {str(source)!r} cannot be read: {error.strerror}") from error
        key = f"inputs/{digest}/{source.name}"
        target = self.path(key)
        if target.is_file() and target.stat().st_size == source.stat().st_size:
            return key
        with _storing(target) as beside:
            copy_file(source, beside)
            beside.chmod(0o444)
            # The file may have changed between the two readings; what lies under a digest has that digest.
            if _sha256(beside) != digest:
                raise InfrastructureError(f"input {str(source)!r} changed while it was stored", remedy="submit again")
            beside.rename(target)
        return key

    def put(self, source: Path, key: str) -> None:
        """Store a file or a directory under a key, in place of what was there.

        The source's files are linked where the file system can, so they must not change any more. Raises UnsafePath for
        links that lead out of `source` and for special files.
        """
        target = self.path(key)
        with _storing(target) as beside:
            copy_tree(source, beside, link=True)
            _replace(beside, target)

    def fetch(self, key: str, target: Path) -> None:
        """Lay what is stored under a key at `target`: inputs as links to the read-only file, the rest as a copy."""
        source = self.path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_tree(source, target, link=key.startswith("inputs/"))

    def delete(self, key: str) -> None:
        """Remove what is stored under a key or below it, if anything."""
        _remove(self.path(key))


def checked_input(source: Path) -> Path:
    """The path of one file whose name Argo can take. Raises UsageError."""
    if not source.is_file():
        what = "is a directory" if source.is_dir() else "does not exist"
        raise UsageError(f"input {str(source)!r} {what}", remedy="give the path of one file")
    if "{{" in source.name:
        raise UsageError(f"input {str(source)!r}: '{{{{' in a file's name is a tag to Argo", remedy="rename the file")
    return source


@contextlib.contextmanager
def _storing(target: Path) -> Iterator[Path]:
    """Yield a path beside `target` to write at; whatever is left there at the end is removed."""
    beside = target.parent / f".storing-{os.urandom(8).hex()}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield beside
    except OSError as error:
        raise InfrastructureError(
            f"cannot store {str(target)!r}: {error.strerror or error}", remedy="make room or mend the disk, then retry"
        ) from error
    finally:
        _remove(beside)


def _replace(beside: Path, target: Path) -> None:
    if beside.is_dir() or target.is_dir():
        old = target.parent / f".storing-{os.urandom(8).hex()}"
        with contextlib.suppress(FileNotFoundError):
            target.rename(old)
        beside.rename(target)
        _remove(old)
    else:
        beside.replace(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes and mode; inside the kernel, and without using space, where the file system can."""
    with source.open("rb") as reader, target.open("xb") as writer:
        try:
            while os.copy_file_range(reader.fileno(), writer.fileno(), 1 << 30):
                pass
        except (OSError, AttributeError) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                raise
            writer.seek(reader.seek(0))
            writer.truncate()
            shutil.copyfileobj(reader, writer, _CHUNK)
    shutil.copymode(source, target)


def copy_tree(source: Path, target: Path, *, link: bool) -> None:
    """Copy a file or a directory as it is to a path that does not exist; with `link` files as hard links if possible.

    A symbolic link inside a directory stays a link when it leads to a place inside that directory. Raises UnsafePath
    for a link that leads out of it and for anything that is neither file, directory nor link.
    """
    _copy(source, target, source, link)


def _copy(source: Path, target: Path, top: Path, link: bool) -> None:
    mode = source.lstat().st_mode
    if stat.S_ISREG(mode):
        if link:
            with contextlib.suppress(OSError):
                os.link(source, target)
                return
        copy_file(source, target)
    elif stat.S_ISDIR(mode):
        target.mkdir()
        for entry in entries_of(source):
            _copy(source / entry.name, target / entry.name, top, link)
    elif stat.S_ISLNK(mode) and source != top:
        destination = Path(os.path.realpath(source))
        inside = Path(os.path.realpath(top))
        if not destination.is_relative_to(inside):
            raise UnsafePath(f"link {str(source)!r} leads out of its artifact, to {str(destination)!r}")
        target.symlink_to(os.path.relpath(destination, os.path.realpath(source.parent)))
    else:
        raise UnsafePath(f"{str(source)!r} is neither a file nor a directory, and cannot be an artifact")

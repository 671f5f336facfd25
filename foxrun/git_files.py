"""The tree hash of files without the git program: of a checkout in a container, which has none.

Every file counts, ignored ones too: a fresh checkout holds none of those. Formats: git's gitformat-index(5) and
https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from foxrun.files import entries_of

_GITLINK = 0o160000
_ENTRY = struct.Struct(">10L20sH")
_BLOCK = 1 << 20


def root_of(directory: Path | str) -> Path | None:
    """The nearest directory at or above ``directory`` that holds ``.git``; None when there is none."""
    here = Path(directory).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)


def head_of_files(root: Path) -> str:
    """The commit that the checkout at ``root`` is at, read from its files; empty for what only git can tell."""
    folder = root / ".git"
    try:
        text = (folder / "HEAD").read_text("utf-8").strip()
        if text.startswith("ref: "):
            name = text.removeprefix("ref: ").strip()
            loose = folder / name
            text = loose.read_text("utf-8").strip() if loose.is_file() else _packed(folder / "packed-refs", name)
    except (OSError, ValueError):
        return ""
    return text if re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", text) else ""


def _packed(file: Path, name: str) -> str:
    words = (line.split() for line in file.read_text("utf-8").splitlines())
    return next((pair[0] for pair in words if pair[1:] == [name]), "")


def tree_of_files(root: Path, *, exclude: Iterable[Path] = ()) -> str:
    """The tree hash that a commit of all files below ``root`` would have.

    Never counts ``.git``, byte code, or what is below ``exclude``; a submodule is the commit that the index names.
    Raises OSError for a file that cannot be read.
    """
    hasher = "sha256" if _is_sha256(root) else "sha1"
    left_out = {Path(path).resolve() for path in exclude}
    found = _tree(root.resolve(), "", hasher, left_out, _gitlinks(root / ".git" / "index"))
    return (found or hashlib.new(hasher, b"tree 0\0").digest()).hex()


def _tree(folder: Path, name: str, hasher: str, left_out: set[Path], links: dict[str, bytes]) -> bytes | None:
    """The hash of a directory; None for one without files, which git does not know."""
    entries: list[tuple[bytes, bytes, bytes]] = []
    for entry in entries_of(folder):
        path, inside = Path(entry.path), f"{name}{entry.name}"
        if entry.name == ".git" or entry.name == "__pycache__" or entry.name.endswith(".pyc") or path in left_out:
            continue
        key, mode = os.fsencode(entry.name), entry.stat(follow_symlinks=False).st_mode
        if inside in links:
            entries.append((key, b"160000", links[inside]))
        elif stat.S_ISDIR(mode):
            if (below := _tree(path, f"{inside}/", hasher, left_out, links)) is not None:
                entries.append((key, b"40000", below))
        elif stat.S_ISLNK(mode):
            target = os.fsencode(os.readlink(path))  # noqa: PTH115  (as bytes, whatever they are)
            entries.append((key, b"120000", hashlib.new(hasher, b"blob %d\0" % len(target) + target).digest()))
        elif stat.S_ISREG(mode):
            entries.append((key, b"100755" if mode & stat.S_IXUSR else b"100644", _blob(path, hasher)))
    if not entries:
        return None
    # Git sorts a directory as if its name ended in a slash.
    entries.sort(key=lambda item: item[0] + b"/" if item[1] == b"40000" else item[0])
    body = b"".join(mode + b" " + key + b"\0" + digest for key, mode, digest in entries)
    return hashlib.new(hasher, b"tree %d\0" % len(body) + body).digest()


def _blob(path: Path, hasher: str) -> bytes:
    with path.open("rb") as stream:
        digest = hashlib.new(hasher, b"blob %d\0" % os.fstat(stream.fileno()).st_size)
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.digest()


def _is_sha256(root: Path) -> bool:
    try:
        config = (root / ".git" / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"^\s*objectformat\s*=\s*sha256\s*$", config, re.IGNORECASE | re.MULTILINE) is not None


def _gitlinks(index: Path) -> dict[str, bytes]:
    """Submodules by path, of an index of version 2 or 3 with SHA-1; none of any other, nor of a damaged one."""
    try:
        data = index.read_bytes()
        magic, version, count = struct.unpack_from(">4sLL", data)
        links: dict[str, bytes] = {}
        if magic != b"DIRC" or version not in (2, 3):
            return {}
        at = 12
        for _ in range(count):
            *numbers, digest, flags = _ENTRY.unpack_from(data, at)
            start = at + _ENTRY.size + (2 if flags & 0x4000 else 0)
            end = data.index(b"\0", start)
            if numbers[6] & 0o170000 == _GITLINK:
                links[os.fsdecode(data[start:end])] = digest
            at += (end - at + 8) & ~7
    except (OSError, struct.error, ValueError):
        return {}
    return links

"""The files of one traced process: lines that are out of the process once written, whatever becomes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
MOST_BYTES = 2 << 30  # of events: a program that draws without end must not fill the disk


class Folder:
    """``<out>/<process>/`` and its streams. Made once: a second process of one name gets the next free number."""

    def __init__(self, out: Path, process: str, *, most_bytes: int = MOST_BYTES) -> None:
        self.path, self.process = _claim(out, process)
        self._files: dict[str, tuple[int, tuple[int, int]]] = {}  # descriptor; device and inode
        self._left = most_bytes

    def write(self, name: str, lines: list[str]) -> None:
        """Append lines to one of the streams."""
        if not lines:
            return
        handle = self._handle(name)
        data = memoryview(("\n".join(lines) + "\n").encode())
        if name == EVENTS:
            if len(data) > self._left:
                self._left = 0  # nothing after this either: a stream with a gap would part by itself
                return
            self._left -= len(data)
        while data:
            data = data[os.write(handle, data) :]

    def _handle(self, name: str) -> int:
        """The stream's descriptor; opened anew where the program closed it, since the number may be another file's."""
        known = self._files.get(name)
        if known is not None and _identity(known[0]) == known[1]:
            return known[0]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        handle = os.open(self.path / name, flags, 0o644)
        self._files[name] = handle, _identity(handle)
        return handle

    def put(self, name: str, value: Mapping[str, Any]) -> None:
        """Write one JSON file, as a whole or not at all."""
        target = self.path / name
        temporary = target.with_name(target.name + ".part")
        temporary.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        temporary.replace(target)

    def close(self) -> None:
        """Give the descriptors back: in a forked child, which has a folder of its own."""
        for handle, identity in self._files.values():
            if _identity(handle) == identity:
                os.close(handle)
        self._files.clear()


def _identity(handle: int) -> tuple[int, int]:
    try:
        status = os.fstat(handle)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _claim(out: Path, process: str) -> tuple[Path, str]:
    out.mkdir(parents=True, exist_ok=True)
    name, again = process, 1
    while True:
        try:
            (out / name).mkdir()
        except FileExistsError:
            again += 1
            name = f"{process}-{again}"
        else:
            return out / name, name

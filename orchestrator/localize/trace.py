"""Reads a trace directory as foxrun/tracing writes it; the cut last line of a killed program is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from foxrun import jsonio

MAIN = "0"
# Shapes alone: memory that nobody set yet. Their contents are no result.
UNSET = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted", "resize_")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of a row: name, component, kind, fingerprint (16 hex digits), checksum."""

    name: str
    component: str
    kind: str
    fingerprint: str
    checksum: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One step's leaves in dataflow order; ``end`` marks the last row, states after the last step."""

    step: int
    leaves: tuple[Leaf, ...]
    end: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One line of events.jsonl; the fields are those of docs/architecture.md."""

    i: int
    step: int
    kind: str
    name: str
    ins: tuple[tuple[str, str, int], ...]
    outs: tuple[tuple[str, str], ...]
    shapes: str
    where: str
    module: str
    phase: str
    thread: int
    value: str
    by: str = ""

    @property
    def function(self) -> tuple[str, str]:
        """The function that runs it: its file and name, and the line in which it begins."""
        return re.sub(r":\d+", "", self.where), self.by.rpartition(" > ")[2]

    @property
    def caller(self) -> str:
        """The line that called that function, where it is known."""
        return self.by.rpartition(" > ")[0]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What two twins' events are matched by."""
        return (self.kind, self.name, self.shapes, self.where)

    @property
    def short(self) -> str:
        """The operation's name without namespace and overload: index_add_."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 2 else parts[-1]

    @property
    def brings_data(self) -> bool:
        """Whether it hands what Python holds to torch: torch.tensor(list), from_numpy, torch.load."""
        return self.name.startswith("aten.") and (self.kind == "host" or ".source_Storage" in self.name)

    @property
    def unset(self) -> bool:
        """Whether its result is memory that nobody wrote."""
        return self.kind == "op" and self.short in UNSET


class Process:
    """One process's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @property
    def header(self) -> dict[str, Any]:
        """header.json; empty where there is none."""
        return _object(self.folder / "header.json")

    @property
    def end(self) -> dict[str, Any] | None:
        """end.json; None when the process was killed."""
        return _object(self.folder / "end.json") or None

    def rows(self) -> Iterator[Row]:
        """Rows of steps.jsonl, one at a time."""
        for value in _lines(self.folder / "steps.jsonl"):
            leaves = tuple(_leaf(item) for item in value.get("leaves") or [])
            yield Row(step=int(value.get("step", 0)), leaves=leaves, end=bool(value.get("end")))

    def event_lines(self) -> Iterator[bytes]:
        """Whole lines of events.jsonl as they stand."""
        file = self.folder / "events.jsonl"
        if not file.is_file():
            return
        with file.open("rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield line

    def events(self) -> Iterator[Event]:
        """All events, one at a time."""
        for line in self.event_lines():
            yield event_of(line)

    @property
    def event_bytes(self) -> int:
        """Size of events.jsonl."""
        file = self.folder / "events.jsonl"
        return file.stat().st_size if file.is_file() else 0


class Trace:
    """All processes of one traced program."""

    def __init__(self, out: Path) -> None:
        self.out = out
        folders = [folder for folder in out.iterdir() if folder.is_dir()] if out.is_dir() else []
        self.processes = {folder.name: Process(folder) for folder in sorted(folders, key=lambda f: _order(f.name))}

    @property
    def main(self) -> Process:
        """The process whose steps count: the first one, or the first of its children that made steps."""
        empty = Process(self.out / MAIN)
        first = self.processes.get(MAIN, empty)
        if any(True for _ in first.rows()):
            return first
        return next((p for p in self.processes.values() if any(not row.end for row in p.rows())), first)

    def children(self, of: str) -> list[str]:
        """Names of the processes that ``of`` started, in order of their start."""
        depth = of.count(".") + 1
        return [name for name in self.processes if name.startswith(f"{of}.") and name.count(".") == depth]

    def mentions(self, words: Sequence[str], most: int = 200_000) -> bool:
        """Whether a process has an event whose kind or name holds one of these words, among its first ``most``."""
        wanted = [word.encode() for word in words]
        for process in self.processes.values():
            for line in islice(process.event_lines(), most):
                head = line.partition(b'"ins"')[0]
                if any(word in head for word in wanted):
                    return True
        return False


def event_of(line: bytes) -> Event:
    """One event from its line. Raises ValueError for a line that is none."""
    v = json.loads(line)
    return Event(
        i=int(v["i"]),
        step=int(v.get("step", 0)),
        kind=str(v.get("kind", "op")),
        name=str(v.get("name", "")),
        ins=tuple((str(a[0]), str(a[1]), int(a[2]) if len(a) > 2 else -1) for a in v.get("ins") or ()),
        outs=tuple((str(a[0]), str(a[1])) for a in v.get("outs") or ()),
        shapes=str(v.get("shapes", "")),
        where=str(v.get("where", "")),
        module=str(v.get("module", "")),
        phase=str(v.get("phase", "")),
        thread=int(v.get("thread", 0)),
        value=str(v.get("value", "")),
        by=str(v.get("by", "")),
    )


def _order(name: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 1 << 30 for part in name.split("."))


def _leaf(item: Any) -> Leaf:
    """``[name, component, kind, fingerprint, checksum]``; outcomes may be ``[name, value]`` in short."""
    checksum = item[4] if len(item) > 4 else None
    return Leaf(
        name=str(item[0]),
        component=str(item[1]),
        kind=str(item[2]),
        fingerprint=str(item[3]),
        checksum=float(checksum) if isinstance(checksum, (int, float)) else None,
    )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        return
    with file.open("rb") as stream:
        for line in stream:
            if not line.endswith(b"\n"):
                return
            value = jsonio.loads(line, name=str(file))
            if isinstance(value, dict):
                yield value


def _object(file: Path) -> dict[str, Any]:
    try:
        value = jsonio.loads(file.read_bytes(), name=str(file))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}

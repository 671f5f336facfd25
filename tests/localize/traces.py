"""Trace directories written by hand, as docs/architecture.md describes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.localize.events import align
from orchestrator.localize.facts import Facts, leads
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Event, Process, event_of


class Stream:
    """Events of one process, made one after the other."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def add(self, kind: str, name: str, *, ins: Sequence[Any] = (), outs: Sequence[Any] = (), **more: Any) -> int:
        """One event; ``ins`` are (label, fingerprint, source), ``outs`` (label, fingerprint) or a fingerprint alone."""
        index = len(self.lines)
        fields = {
            "i": index,
            "step": more.pop("step", 0),
            "kind": kind,
            "name": name,
            "ins": [list(item) for item in ins],
            "outs": [["0", item] if isinstance(item, str) else list(item) for item in outs],
            "shapes": more.pop("shapes", ""),
            "where": more.pop("where", "train.py:1 <module>"),
            "module": more.pop("module", ""),
            "phase": more.pop("phase", "other"),
            "thread": more.pop("thread", 0),
            "value": more.pop("value", ""),
            "by": more.pop("by", ""),
        }
        assert not more
        self.lines.append(json.dumps(fields).encode() + b"\n")
        return index

    def op(self, name: str, ins: Sequence[Any], out: str, **more: Any) -> int:
        """An operation that returns one tensor."""
        return self.add("op", f"aten.{name}.default", ins=ins, outs=[out], **more)

    @property
    def events(self) -> list[Event]:
        return [event_of(line) for line in self.lines]


def process(folder: Path, rows: Sequence[Any] = (), stream: Stream | None = None, **header: Any) -> Process:
    """Write one process's folder. ``rows``: lists of [name, component, kind, fingerprint, checksum]."""
    folder.mkdir(parents=True)
    (folder / "header.json").write_text(json.dumps(header))
    lines = [json.dumps({"step": i, "leaves": leaves}) + "\n" for i, leaves in enumerate(rows)]
    (folder / "steps.jsonl").write_text("".join(lines))
    if stream is not None:
        (folder / "events.jsonl").write_bytes(b"".join(stream.lines))
    return Process(folder)


def facts(write: Any, **more: Any) -> Facts:
    """What is known of two twins whose streams ``write(stream, twin)`` makes."""
    a, b = Stream(), Stream()
    write(a, 0)
    write(b, 1)
    found = align(a.events, b.events)
    return Facts(steps=StepsFound(leaf="loss"), origin=found.origin, leads=leads(found.host, found.origin), **more)

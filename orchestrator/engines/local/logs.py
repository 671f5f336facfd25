"""Following what the pods of a workflow print, line by line, none lost and none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from orchestrator.engines.base import LogLine, Workflow

_CHUNK = 1 << 16


class LogReader:
    """Reads the logs of a workflow's pods as they grow."""

    def __init__(self, pods: Path, wanted: Callable[[dict[str, object]], bool]) -> None:
        self.pods = pods
        self.wanted = wanted
        self._tails: dict[tuple[str, str], _Tail] = {}

    def read(self, workflow: Workflow) -> Iterator[LogLine]:
        """Yield the complete lines that are new since the last call, pods in the order of their beginning."""
        for node in workflow.get("status", {}).get("nodes", {}).values():
            if node["type"] == "Pod" and self.wanted(node):
                # A node that begins anew after a retry has the same id, another beginning and another file.
                key = (node["id"], node["startedAt"])
                if key not in self._tails:
                    self._tails[key] = _Tail(node["displayName"], self.pods / node["id"] / "main.log")
                yield from self._tails[key].lines()

    def rest(self) -> Iterator[LogLine]:
        """Yield the last lines that have no end, and let go of the files."""
        for tail in self._tails.values():
            yield from tail.lines()
            yield from tail.rest()


class _Tail:
    def __init__(self, node: str, path: Path) -> None:
        self.node = node
        self.path = path
        self.stream: BinaryIO | None = None
        self.partial = b""

    def lines(self) -> Iterator[LogLine]:
        if self.stream is None:
            try:
                self.stream = self.path.open("rb")
            except FileNotFoundError:
                return
        while chunk := self.stream.read(_CHUNK):
            *whole, self.partial = (self.partial + chunk).split(b"\n")
            for line in whole:
                yield self._line(line)

    def rest(self) -> Iterator[LogLine]:
        if self.partial:
            yield self._line(self.partial)
            self.partial = b""
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    def _line(self, raw: bytes) -> LogLine:
        return LogLine(self.node, raw.removesuffix(b"\r").decode("utf-8", "replace"))

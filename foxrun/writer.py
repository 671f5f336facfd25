"""RunWriter: writes one run directory, its manifest last and atomically.

Rows come in groups, so a step never waits for a file. sha256 sums run along with the writing: finishing reads nothing
back. A crash leaves a directory without a manifest, which every reader takes as incomplete.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from foxrun import files, jsonio, schema
from foxrun.problems import ContractError
from foxrun.schema import Leaf

ROWS_PER_BLOCK = 256  # 1.4 MB of bits at 711 leaves: what a remote comparison reads to find a difference
_OWN_KEYS = (
    "schema_version",
    "run_id",
    "config_sha256",
    "files",
    "blocks",
    "rows",
    "leaf_count",
    "times",
    "exit_reason",
)


_OBJECTS = ("code", "config", "environment", "variables")
_LISTS = ("inputs", "command")


class _Stream:
    """A file that grows, with the sha256 of the whole and of each block of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.offsets: list[int] = []
        self.block_sums: list[str] = []
        self._file: BinaryIO = path.open("xb", buffering=0)
        self._whole = hashlib.sha256()
        self._block = hashlib.sha256()
        self._block_open = False

    def write(self, data: bytes | memoryview) -> None:
        if not len(data):
            return
        if not self._block_open:
            self.offsets.append(self.size)
            self._block_open = True
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        self._whole.update(data)
        self._block.update(data)
        self.size += len(data)

    def mark(self) -> tuple[Any, ...]:
        """The state to come back to."""
        return self.size, len(self.offsets), self._block_open, self._whole.copy(), self._block.copy()

    def back_to(self, mark: tuple[Any, ...]) -> None:
        """Undo what was written since ``mark``; no block may have ended meanwhile."""
        self.size, blocks, self._block_open, self._whole, self._block = mark
        del self.offsets[blocks:]
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def end_block(self) -> None:
        if self._block_open:
            self.block_sums.append(self._block.hexdigest())
            self._block = hashlib.sha256()
            self._block_open = False

    def finish(self) -> str:
        """Close it durably; the sha256 of the whole."""
        self.end_block()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._whole.hexdigest()

    def close(self) -> None:
        self._file.close()


class RunWriter:
    """Writes ``out/<random run id>/``.

    ``leaves``: every fingerprinted leaf in dataflow order; empty for a trainer without fingerprints, and then there is
    no leaves.json and no bits.u64. ``manifest``: what the trainer knows: code, seed, mode, config, inputs, environment,
    variables, command, and whatever else it wants to record. As a context manager it finishes with "completed", or
    after an exception with "failed: ..."; a process that dies leaves the directory incomplete.
    """

    def __init__(
        self,
        out: Path | str,
        *,
        leaves: Sequence[Leaf],
        manifest: Mapping[str, Any],
        rows_per_block: int = ROWS_PER_BLOCK,
    ) -> None:
        self._leaves = list(leaves)
        self._names = [leaf.name for leaf in self._leaves]
        self._name_set = frozenset(self._names)
        if len(self._name_set) != len(self._names):
            twice = sorted({name for name in self._names if self._names.count(name) > 1})
            raise ContractError(f"leaves named twice: {', '.join(twice)}", remedy="give each leaf its own name")
        if taken := [key for key in _OWN_KEYS if key in manifest]:
            raise ContractError(f"the manifest's {', '.join(taken)} is the writer's own", remedy="leave it out")
        if rows_per_block < 1:
            raise ContractError(f"rows_per_block is {rows_per_block}", remedy="use 1 or more")
        for key, value in manifest.items():
            kind = Mapping if key in _OBJECTS else (list, tuple) if key in _LISTS else object
            if not isinstance(value, kind):
                what = f"the manifest's {key} is a {type(value).__name__}"
                raise ContractError(what, remedy="give a mapping" if key in _OBJECTS else "give a list")
        self._manifest = dict(manifest)
        jsonio.dumps(self._manifest)  # told now and not after hours of training
        self._rows_per_block = rows_per_block
        self._started = _now()
        self._rows = 0
        self._checksum_order: list[str] = []
        self._files: dict[str, dict[str, Any]] = {}
        self._finished = False
        self.run_id = os.urandom(8).hex()
        self.path = Path(out) / self.run_id
        self.path.mkdir(parents=True)
        self._diag = _Stream(self.path / schema.DIAG)
        self._bits = _Stream(self.path / schema.BITS) if self._leaves else None
        self._timing: _Stream | None = None
        if self._leaves:
            self._put(schema.LEAVES, schema.leaves_text(self._leaves).encode(), compared=True)

    def append(self, rows: Sequence[Mapping[str, Any]], bits: bytes | bytearray | memoryview = b"") -> None:
        """Append rows: mappings with step, phase, checksums {leaf: float} and metrics, in the order of the steps.

        ``bits``: len(rows) x len(leaves) little-endian uint64, row by row; 0 for a leaf not taken in a row. Checksums
        are written in the order of the leaves, metrics in their own. Raises ContractError and writes nothing when a row
        breaks the contract; OSError when the disk is full.
        """
        self._must_be_open()
        view = memoryview(bits).cast("B")
        width = 8 * len(self._names)
        if len(view) != width * len(rows):
            raise ContractError(
                f"{len(view)} bytes of fingerprints for {len(rows)} rows of {len(self._names)} leaves",
                remedy=f"give {width * len(rows)} bytes",
            )
        lines = [self._line(row, self._rows + index) for index, row in enumerate(rows)]
        done = 0
        while done < len(rows):
            count = min(len(rows) - done, self._rows_per_block - self._rows % self._rows_per_block)
            self._write(b"".join(lines[done : done + count]), view[width * done : width * (done + count)])
            done += count
            self._rows += count
            if self._rows % self._rows_per_block == 0:
                self._diag.end_block()
                if self._bits is not None:
                    self._bits.end_block()

    def _write(self, lines: bytes, bits: memoryview) -> None:
        """Both or neither: after a full disk or Ctrl-C the run can still be finished, shorter and sound."""
        marks = [(stream, stream.mark()) for stream in (self._diag, self._bits) if stream is not None]
        try:
            self._diag.write(lines)
            if self._bits is not None:
                self._bits.write(bits)
        except BaseException:
            for stream, mark in marks:
                stream.back_to(mark)
            raise

    def _line(self, row: Mapping[str, Any], index: int) -> bytes:
        step, phase = row.get("step"), row.get("phase")
        checksums, metrics = row.get("checksums", {}), row.get("metrics", {})
        line = index + 1
        if type(step) is not int or step < 0:
            raise ContractError(f"step is {step!r}", file=schema.DIAG, line=line, remedy="give an integer from 0")
        if phase not in schema.PHASES:
            raise ContractError(f"phase is {phase!r}", file=schema.DIAG, line=line, remedy="give train or eval")
        if unknown := row.keys() - {"step", "phase", "checksums", "metrics"}:
            raise ContractError(
                f"unknown keys {sorted(unknown)}", file=schema.DIAG, line=line, remedy="put them into metrics"
            )
        if list(checksums) != self._checksum_order:
            if self._names and (strange := [name for name in checksums if name not in self._name_set]):
                raise ContractError(
                    f"checksums of no leaf: {strange}", file=schema.DIAG, line=line, remedy="declare them in leaves"
                )
            known = [name for name in self._names if name in checksums]
            self._checksum_order = known or list(checksums)
            checksums = {name: checksums[name] for name in self._checksum_order}
        text = jsonio.dumps({"step": step, "phase": phase, "checksums": checksums, "metrics": metrics})
        return text.encode() + b"\n"

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write eval_summary.json: total_pnl_usd, max_drawdown_usd, win_rate, trades, ...; keys stay in their order."""
        self._must_be_open()
        self._put(schema.SUMMARY, jsonio.pretty(dict(summary)).encode(), compared=True)

    def timing(self, row: Mapping[str, Any]) -> None:
        """Append a row to timing.jsonl, which is never compared: the place for wall-clock figures."""
        self._must_be_open()
        if self._timing is None:
            self._timing = _Stream(self.path / schema.TIMING)
        self._timing.write(jsonio.dumps(dict(row)).encode() + b"\n")

    def attach(self, name: str, data: bytes, *, compared: bool) -> None:
        """Write another file of the run, such as ``dumps/step-12/reward.bin``; ``compared``: part of the verdict."""
        self._must_be_open()
        if trouble := schema.path_problem(name):
            raise ContractError(f"{name!r} {trouble}", remedy="give a relative path such as dumps/step-12/reward.bin")
        if name in self._files or name in (schema.MANIFEST, schema.DIAG, schema.BITS, schema.TIMING, schema.SUMMARY):
            raise ContractError(f"{name!r} is written already or the contract's own", remedy="choose another name")
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        self._put(name, data, compared=compared)

    def finish(self, exit_reason: str = schema.COMPLETED) -> None:
        """Write run_manifest.json, last and atomically. ``exit_reason``: "completed", or why the run ended early."""
        self._must_be_open()
        self._finished = True
        streams = {schema.DIAG: (self._diag, True)}
        if self._bits is not None:
            streams[schema.BITS] = (self._bits, True)
        if self._timing is not None:
            streams[schema.TIMING] = (self._timing, False)
        blocks: dict[str, Any] = {}
        for name, (stream, compared) in streams.items():
            self._files[name] = {"name": name, "size": stream.size, "sha256": stream.finish(), "compared": compared}
            if name in (schema.DIAG, schema.BITS):
                blocks[name] = {
                    "rows_per_block": self._rows_per_block, "offsets": stream.offsets, "sha256": stream.block_sums,
                }  # fmt: skip
        given = self._manifest
        config = given.get("config", {})
        manifest: dict[str, Any] = {
            "schema_version": schema.CONTRACT_VERSION,
            "run_id": self.run_id,
            "code": {"commit_asked": "", "tree_asked": "", "tree_run": "", "branch": "", **given.get("code", {})},
            "seed": given.get("seed"),
            "mode": given.get("mode"),
            "config": config,
            "config_sha256": hashlib.sha256(jsonio.canonical(config).encode()).hexdigest(),
            "inputs": given.get("inputs", []),
            "environment": given.get("environment", {}),
            "variables": given.get("variables", {}),
            "command": given.get("command", []),
        }
        manifest.update((key, value) for key, value in given.items() if key not in manifest)
        manifest["files"] = [self._files[name] for name in sorted(self._files)]
        manifest["blocks"] = blocks
        manifest["rows"] = self._rows
        manifest["leaf_count"] = len(self._names)
        manifest["times"] = {"started": self._started, "finished": _now()}
        manifest["exit_reason"] = exit_reason
        files.sync_directory(self.path)
        files.write_atomic(self.path / schema.MANIFEST, jsonio.pretty(manifest))
        files.sync_directory(self.path.parent)

    def close(self) -> None:
        """Let go of the files without a manifest: the run stays incomplete."""
        self._finished = True
        for stream in (self._diag, self._bits, self._timing):
            if stream is not None:
                stream.close()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished:
            return
        if error is None:
            self.finish()
        else:
            self.finish(f"failed: {type(error).__name__}: {error}".rstrip(": "))

    def _put(self, name: str, data: bytes, *, compared: bool) -> None:
        files.write_atomic(self.path / name, data)
        digest = hashlib.sha256(data).hexdigest()
        self._files[name] = {"name": name, "size": len(data), "sha256": digest, "compared": compared}

    def _must_be_open(self) -> None:
        if self._finished:
            raise ContractError(f"run {self.run_id} is finished", remedy="make a new RunWriter for another attempt")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Run: reads a run directory, whatever has become of it. Trouble becomes Problems; nothing passes in silence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from foxrun import files, jsonio, schema
from foxrun.problems import ContractError, Problem
from foxrun.schema import Leaf

BLOCK = 1 << 20
_COMPRESSED = ("", ".zst", ".gz")
_MARKS = (schema.MANIFEST, schema.DIAG, schema.LEAVES, schema.BITS, schema.SUMMARY)
_RUN_AGAIN = "run the trainer again, or copy the run directory again"


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

        def walk(directory: Path, prefix: str) -> None:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        walk(Path(entry.path), name + "/")
                    elif entry.is_file() and (
                        not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(root)
                    ):
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


class _SubSource:
    """One directory of a source, as a source."""

    def __init__(self, source: Source, prefix: str, listing: dict[str, int]) -> None:
        self._source = source
        self._prefix = prefix
        self._listing = listing
        self.label = f"{source.label.rstrip('/')}/{prefix.rstrip('/')}"

    def list(self) -> dict[str, int]:
        return self._listing

    def open(self, name: str) -> BinaryIO:
        return self._source.open(self._prefix + name)

    def read_range(self, name: str, start: int, end: int) -> bytes:
        return self._source.read_range(self._prefix + name, start, end)


@dataclass(frozen=True)
class Row:
    """One row of diag.jsonl. ``index``: its place from 0, which is its row of bits.u64; ``line``: from 1.

    ``metrics`` also holds keys that the row has beside the four (as ``/key`` where metrics has that key already).
    """

    index: int
    line: int
    step: int
    phase: str
    checksums: dict[str, Any]
    metrics: dict[str, Any]


class Run:
    """A run, open for reading. Opening reads the listing, the manifest, leaves.json and eval_summary.json; rows stream.

    ``problems`` grows while rows are read. ``row_count``: whole rows of bits.u64. ``complete``: the manifest is there
    and sound, and every file that it names is there with its size.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.label = source.label
        self.problems: list[Problem] = []
        self.manifest: dict[str, Any] | None = None
        self.leaves: list[Leaf] = []
        self.summary: dict[str, Any] | None = None
        self.row_count = 0
        self.complete = False
        try:
            self.files = source.list()
        except OSError as error:
            self.files = {}
            self._problem(source.label, None, f"cannot be listed: {error}", "check the path and its permissions")
        self._read_manifest()
        self._read_leaves()
        summary = self._read_json(schema.SUMMARY)
        if isinstance(summary, dict):
            self.summary = summary
        elif summary is not None:
            self._problem(schema.SUMMARY, 1, f"is {type(summary).__name__}, not an object", "write one JSON object")
        self._count_rows()
        if self.stored_name(schema.DIAG) is None and self.stored_name(schema.SUMMARY) is None:
            self._problem(
                self.label, None, f"holds neither {schema.DIAG} nor {schema.SUMMARY}",
                "the trainer must write at least one of them",
            )  # fmt: skip

    @property
    def run_id(self) -> str:
        """The manifest's run id, else the directory's name."""
        if self.manifest is not None and isinstance(self.manifest.get("run_id"), str):
            return cast(str, self.manifest["run_id"])
        return self.label.rstrip("/").rsplit("/", 1)[-1]

    def stored_name(self, name: str) -> str | None:
        """The file that holds ``name``: itself, or with .zst or .gz behind it; None when there is none."""
        return next((name + ending for ending in _COMPRESSED if name + ending in self.files), None)

    def rows(self) -> Iterator[Row]:
        """Stream the rows of diag.jsonl. A line that cannot be read keeps its index, and becomes a Problem."""
        stored = self.stored_name(schema.DIAG)
        if stored is None:
            return
        index, expected = -1, None
        last_line = 0
        names = {leaf.name for leaf in self.leaves}
        try:
            with files.unpacked(self.source.open(stored), name=stored) as stream:
                for line, value in jsonio.loads_lines(stream, name=stored):
                    if line != last_line:
                        index += 1
                        last_line = line
                    if isinstance(value, Problem):
                        self._note(value)
                        continue
                    row = self._row(value, index, line, stored)
                    if row is None:
                        continue
                    expected = self._check_step(row, expected, stored)
                    if names and (strange := [name for name in row.checksums if name not in names]):
                        self._problem(
                            stored, line, f"checksums of leaves that {schema.LEAVES} does not have: {strange[:5]}",
                            "declare every leaf before the first row", fatal=False,
                        )  # fmt: skip
                    yield row
        except (OSError, ContractError) as error:
            self._caught(error, stored)

    def blocks(self, name: str, size: int = BLOCK) -> Iterator[bytes]:
        """The stored bytes of a file, ``size`` at a time. Raises ContractError when it cannot be read."""
        try:
            with self.source.open(name) as stream:
                while data := stream.read(size):
                    yield data
        except OSError as error:
            raise ContractError(f"cannot be read: {error}", file=f"{self.label}/{name}", remedy=_RUN_AGAIN) from None

    def bits(self, first_row: int, last_row: int) -> bytes:
        """Fingerprints of rows first_row..last_row-1: little-endian uint64, len(leaves) a row; fewer at the end."""
        width = 8 * len(self.leaves)
        first, last = max(0, first_row), min(last_row, self.row_count)
        if width == 0 or last <= first:
            return b""
        try:
            return self.source.read_range(schema.BITS, first * width, last * width)
        except OSError as error:
            file = f"{self.label}/{schema.BITS}"
            raise ContractError(f"cannot be read: {error}", file=file, remedy=_RUN_AGAIN) from None

    def verify(self) -> list[Problem]:
        """Every file of the manifest against its size and sha256; empty when all agree."""
        if self.manifest is None:
            return [Problem(schema.MANIFEST, None, "missing or unreadable, so nothing can be verified", _RUN_AGAIN)]
        found: list[Problem] = []
        for entry in self._entries():
            name = entry["name"]
            if name not in self.files:
                found.append(_missing(name))
                continue
            try:
                with self.source.open(name) as stream:
                    digest, size = files.sha256_stream(stream)
            except OSError as error:
                found.append(Problem(name, None, f"cannot be read: {error}", _RUN_AGAIN))
                continue
            if size != entry["size"]:
                found.append(_other_size(name, size, entry["size"]))
            elif digest != entry["sha256"]:
                what = f"its sha256 is {digest}, the manifest says {entry['sha256']}: it was changed or damaged later"
                found.append(Problem(name, None, what, _RUN_AGAIN))
        return found

    def _entries(self) -> list[dict[str, Any]]:
        """The manifest's files that are described soundly and stay in the run directory."""
        entries = (self.manifest or {}).get("files")
        return [
            entry
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, dict)
            and not schema.path_problem(entry.get("name"))
            and type(entry.get("size")) is int
            and isinstance(entry.get("sha256"), str)
        ]

    def _read_manifest(self) -> None:
        if schema.MANIFEST not in self.files:
            remedy = "the run was killed, is still going on, or its trainer writes none; run it again for a verdict"
            self._problem(schema.MANIFEST, None, "missing: the run is incomplete", remedy)
            return
        manifest = self._read_json(schema.MANIFEST)
        if manifest is None:
            return
        wrong = schema.check_manifest(manifest)
        for what in wrong:
            self._problem(schema.MANIFEST, None, what, "see docs/run-contract.md; write it by foxrun.RunWriter")
        if not isinstance(manifest, dict):
            return
        self.manifest = manifest
        whole = not wrong
        listed = set()
        for entry in self._entries():
            name = entry["name"]
            listed.add(name)
            if name not in self.files:
                self._note(_missing(name))
                whole = False
            elif self.files[name] != entry["size"]:
                self._note(_other_size(name, self.files[name], entry["size"]))
                whole = False
        for name in (schema.DIAG, schema.LEAVES, schema.BITS, schema.SUMMARY):
            if name in self.files and name not in listed:
                self._problem(name, None, "not named in the manifest", "list it there, with its sha256", fatal=False)
        self.complete = whole

    def _read_leaves(self) -> None:
        value = self._read_json(schema.LEAVES)
        if value is None:
            return
        items = value.get("leaves") if isinstance(value, dict) else None
        remedy = "see docs/run-contract.md; write it by foxrun.RunWriter"
        if not isinstance(items, list):
            self._problem(schema.LEAVES, None, 'is not {"schema_version": 1, "leaves": [...]}', remedy)
            return
        try:
            leaves = [Leaf.from_json(item) for item in items]
        except ContractError as error:
            self._problem(schema.LEAVES, None, error.what, remedy)
            return
        names = [leaf.name for leaf in leaves]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            self._problem(schema.LEAVES, None, f"the leaf {twice!r} is there twice", remedy)
            return
        self.leaves = leaves

    def _count_rows(self) -> None:
        size = self.files.get(schema.BITS)
        if size is None:
            if self.leaves:
                self._problem(schema.BITS, None, f"missing, though {schema.LEAVES} names leaves", _RUN_AGAIN)
            return
        width = 8 * len(self.leaves)
        if width == 0:
            if size:
                self._problem(schema.BITS, None, f"cannot be read without {schema.LEAVES}", _RUN_AGAIN)
            return
        self.row_count, rest = divmod(size, width)
        if rest:
            what = f"the last row is cut: {size} bytes are no whole number of rows of {width} bytes"
            self._problem(schema.BITS, None, what, _RUN_AGAIN)
        rows = (self.manifest or {}).get("rows")
        if type(rows) is int and rows != self.row_count:
            self._problem(schema.BITS, None, f"holds {self.row_count} rows, the manifest says {rows}", _RUN_AGAIN)

    def _row(self, value: Any, index: int, line: int, file: str) -> Row | None:
        if not isinstance(value, dict):
            self._problem(file, line, f"the row is {type(value).__name__}, not an object", "write one object a line")
            return None
        step = value.get("step")
        if type(step) is not int or step < 0:
            self._problem(file, line, f"step is {_short(step)}, not an integer from 0", "count steps from 0")
            return None
        checksums, metrics = value.get("checksums", {}), value.get("metrics", {})
        for key, part in (("checksums", checksums), ("metrics", metrics)):
            if not isinstance(part, dict):
                self._problem(file, line, f"{key} is {_short(part)}, not an object", f"write {{}} for no {key}")
                return None
        phase = value.get("phase", "")
        if phase not in schema.PHASES:
            self._problem(file, line, f"phase is {_short(phase)}", "write train or eval", fatal=False)
        beside = {key: item for key, item in value.items() if key not in ("step", "phase", "checksums", "metrics")}
        if not isinstance(phase, str):
            beside["phase"], phase = phase, ""
        if beside:
            metrics = metrics | {f"/{key}" if key in metrics else key: item for key, item in beside.items()}
        return Row(index, line, step, phase, checksums, metrics)

    def _check_step(self, row: Row, expected: int | None, file: str) -> int:
        """Note a step that is missing, repeated or out of order; the step to expect next."""
        if expected is not None and row.step != expected:
            how = "is missing" if row.step > expected else "is followed by an earlier or equal one"
            at = expected if row.step > expected else expected - 1
            remedy = "write each step once, in order; check that one process alone writes the file"
            self._problem(file, row.line, f"step {at} {how}: this row is step {row.step}", remedy, fatal=False)
        return row.step + 1

    def _read_json(self, name: str) -> Any:
        stored = self.stored_name(name)
        if stored is None:
            return None
        try:
            with files.unpacked(self.source.open(stored), name=stored) as stream:
                text = stream.read()

            def repeated(key: str) -> None:
                what = f"the key {key!r} is there twice, the last one counts"
                self._problem(stored, None, what, "make the writer write each key once", fatal=False)

            return jsonio.loads(text, name=stored, on_duplicate=repeated)
        except (OSError, ContractError) as error:
            self._caught(error, stored)
            return None

    def _caught(self, error: OSError | ContractError, file: str) -> None:
        if isinstance(error, ContractError):
            self._note(error.problem(file))
        else:
            self._problem(file, None, f"cannot be read: {error}", _RUN_AGAIN)

    def _problem(self, file: str, line: int | None, what: str, remedy: str, *, fatal: bool = True) -> None:
        self._note(Problem(file, line, what, remedy, fatal))

    def _note(self, problem: Problem) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def open_run(where: Path | str | Source) -> Run:
    """Open a run directory, or an out directory with one complete attempt in it.

    Of several complete attempts the one finished last (by its manifest) is taken, with a note; of none, the largest
    incomplete one, with its problems. Raises ContractError when there is no such directory or no run in it.
    """
    source: Source
    if isinstance(where, (str, os.PathLike)):
        path = Path(where)
        if not path.exists():
            raise ContractError("there is no such directory", file=str(path), remedy="check the path")
        if not path.is_dir():
            remedy = f"give the directory that holds {schema.DIAG}"
            raise ContractError("is a file, not a run directory", file=str(path), remedy=remedy)
        source = DirectorySource(path)
    else:
        source = where
    try:
        listing = source.list()
    except OSError as error:
        raise ContractError(f"cannot be listed: {error}", file=source.label, remedy="check its permissions") from None
    if _is_run(listing):
        return Run(source)
    attempts = []
    for prefix in sorted({name.split("/", 1)[0] + "/" for name in listing if "/" in name}):
        inside = {name[len(prefix) :]: size for name, size in listing.items() if name.startswith(prefix)}
        if _is_run(inside):
            attempts.append(Run(_SubSource(source, prefix, inside)))
    if not attempts:
        what = f"holds no run: none of {', '.join(_MARKS)} is there" if listing else "is empty: no run was written"
        remedy = "see the trainer's log; a run directory is what --out of the trainer names"
        raise ContractError(what, file=source.label, remedy=remedy)
    complete = [run for run in attempts if run.complete]
    if complete:
        chosen = max(complete, key=lambda run: (_finished(run), run.run_id))
    else:
        chosen = max(attempts, key=lambda run: (sum(run.files.values()), run.run_id))
    if len(attempts) > 1:
        others = ", ".join(run.run_id for run in attempts if run is not chosen)
        why = "finished last" if complete else "none is complete, it holds most"
        what = f"{len(attempts)} attempts, {len(complete)} complete: {chosen.run_id} is read ({why}), not {others}"
        chosen.problems.append(Problem(source.label, None, what, "name one run directory to read another", fatal=False))
    return chosen


def _is_run(listing: dict[str, int]) -> bool:
    return any(mark + ending in listing for mark in _MARKS for ending in _COMPRESSED)


def _finished(run: Run) -> str:
    times = (run.manifest or {}).get("times")
    finished = times.get("finished") if isinstance(times, dict) else None
    return finished if isinstance(finished, str) else ""


def _missing(name: str) -> Problem:
    return Problem(name, None, "missing, though the manifest names it", _RUN_AGAIN)


def _other_size(name: str, size: int, listed: int) -> Problem:
    return Problem(name, None, f"holds {size} bytes, the manifest says {listed}", _RUN_AGAIN)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, (dict, list)) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."

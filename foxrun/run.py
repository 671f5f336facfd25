"""Run: reads a run directory, whatever has become of it. Trouble becomes Problems; nothing passes in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from foxrun import files, jsonio, schema
from foxrun.problems import ContractError, Problem
from foxrun.rows import Row, read_rows
from foxrun.schema import Leaf
from foxrun.sources import Source

# Two files of 142 MB: 0.07 s so, 0.21 s by 1 MiB (whose memory is mapped anew for each block); cmp: 0.12 s.
BLOCK = 1 << 16
MOST_PROBLEMS = 100
_NOTHING: Any = object()  # null is something
COMPRESSED = ("", ".zst", ".gz")
_RUN_AGAIN = "run the trainer again, or copy the run directory again"


class Run:
    """A run, open for reading. Opening reads the listing, the manifest, leaves.json and eval_summary.json; rows stream.

    ``lazy``: leaves.json and eval_summary.json are read when first asked for (``load`` reads both), so that a run far
    away costs its manifest alone. ``problems`` grows while things are read. ``complete``: the manifest is there and
    sound, and every file that it names is there with its size.
    """

    def __init__(self, source: Source, *, lazy: bool = False) -> None:
        self.source = source
        self.label = source.label
        self.problems: list[Problem] = []
        self._noted: set[Problem] = set()
        self._per_file: dict[tuple[str, bool], int] = {}
        self.manifest: dict[str, Any] | None = None
        self._leaves: list[Leaf] = []
        self._summary: dict[str, Any] | None = None
        self._row_count = 0
        self._loaded = False
        self.complete = False
        try:
            self.files = source.list()
        except OSError as error:
            self.files = {}
            self._problem(source.label, None, f"cannot be listed: {error}", "check the path and its permissions")
        self._read_manifest()
        if not lazy:
            self.load()

    def load(self) -> None:
        """Read leaves.json and eval_summary.json, unless they were read."""
        if self._loaded:
            return
        self._loaded = True
        self._read_leaves()
        summary = self._read_json(schema.SUMMARY)
        if isinstance(summary, dict):
            self._summary = summary
        elif summary is not _NOTHING:
            self._problem(schema.SUMMARY, 1, f"is {type(summary).__name__}, not an object", "write one JSON object")
        self._count_rows()
        if self.stored_name(schema.DIAG) is None and self.stored_name(schema.SUMMARY) is None:
            self._problem(
                self.label, None, f"holds neither {schema.DIAG} nor {schema.SUMMARY}",
                "the trainer must write at least one of them",
            )  # fmt: skip

    @property
    def leaves(self) -> list[Leaf]:
        """The fingerprinted leaves in dataflow order; empty without leaves.json."""
        self.load()
        return self._leaves

    @property
    def summary(self) -> dict[str, Any] | None:
        """The content of eval_summary.json; None without it."""
        self.load()
        return self._summary

    @property
    def row_count(self) -> int:
        """Whole rows of bits.u64."""
        self.load()
        return self._row_count

    @property
    def run_id(self) -> str:
        """The manifest's run id, else the directory's name."""
        if self.manifest is not None and isinstance(self.manifest.get("run_id"), str):
            return cast(str, self.manifest["run_id"])
        return self.label.rstrip("/").rsplit("/", 1)[-1]

    def stored_name(self, name: str) -> str | None:
        """The file that holds ``name``: itself, or with .zst or .gz behind it; None when there is none."""
        return next((name + ending for ending in COMPRESSED if name + ending in self.files), None)

    def rows(self) -> Iterator[Row]:
        """Stream the rows of diag.jsonl. A line that cannot be read keeps its index, and becomes a Problem."""
        stored = self.stored_name(schema.DIAG)
        if stored is None:
            return
        try:
            with files.unpacked(self.source.open(stored), name=stored) as stream:
                count = yield from read_rows(stream, stored, {leaf.name for leaf in self.leaves}, self._note)
            self._check_row_count(stored, count)
        except (OSError, ContractError) as error:
            self._caught(error, stored)

    def blocks(self, name: str, size: int = BLOCK) -> Iterator[bytes]:
        """The stored bytes of a file, ``size`` at a time. Raises ContractError when it cannot be read."""
        try:
            with self.source.open(name) as stream:
                while data := stream.read(size):
                    while len(data) < size and (more := stream.read(size - len(data))):
                        data += more  # a network stream may give less than it is asked for
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
                found.append(self._missing(name))
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
        if manifest is _NOTHING:
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
                self._note(self._missing(name))
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
        if value is _NOTHING:
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
        self._leaves = leaves

    def _count_rows(self) -> None:
        size = self.files.get(schema.BITS)
        if size is None:
            if self.leaves and not any(problem.file == schema.BITS for problem in self.problems):
                stored = self.stored_name(schema.BITS)
                remedy = f"unpack {stored}" if stored else _RUN_AGAIN
                self._problem(schema.BITS, None, f"missing, though {schema.LEAVES} names leaves", remedy)
            return
        width = 8 * len(self.leaves)
        if width == 0:
            if size:
                self._problem(schema.BITS, None, f"cannot be read without {schema.LEAVES}", _RUN_AGAIN)
            return
        self._row_count, rest = divmod(size, width)
        if rest:
            what = f"the last row is cut: {size} bytes are no whole number of rows of {width} bytes"
            self._problem(schema.BITS, None, what, _RUN_AGAIN)
        rows = (self.manifest or {}).get("rows")
        if type(rows) is int and rows != self.row_count:
            self._problem(schema.BITS, None, f"holds {self.row_count} rows, the manifest says {rows}", _RUN_AGAIN)

    def _read_json(self, name: str) -> Any:
        """The content of a JSON file, or _NOTHING where it is missing or cannot be read."""
        stored = self.stored_name(name)
        if stored is None:
            return _NOTHING
        try:
            with files.unpacked(self.source.open(stored), name=stored) as stream:
                text = stream.read()

            def repeated(key: str) -> None:
                what = f"the key {key!r} is there twice, the last one counts"
                self._problem(stored, None, what, "make the writer write each key once", fatal=False)

            return jsonio.loads(text, name=stored, on_duplicate=repeated)
        except (OSError, ContractError) as error:
            self._caught(error, stored)
            return _NOTHING

    def _caught(self, error: OSError | ContractError, file: str) -> None:
        if isinstance(error, ContractError):
            self._note(error.problem(file))
        else:
            self._problem(file, None, f"cannot be read: {error}", _RUN_AGAIN)

    def _missing(self, name: str) -> Problem:
        stored = self.stored_name(name)
        remedy = f"unpack {stored}, or write a manifest for it" if stored else _RUN_AGAIN
        return Problem(name, None, "missing, though the manifest names it", remedy)

    def _check_row_count(self, file: str, count: int) -> None:
        """After the last row: as many as the manifest says, and as bits.u64 has."""
        rows = (self.manifest or {}).get("rows")
        if type(rows) is int and rows != count:
            self._problem(file, None, f"holds {count} rows, the manifest says {rows}", _RUN_AGAIN)
        elif self.leaves and schema.BITS in self.files and count != self.row_count:
            what = f"holds {count} rows, {schema.BITS} holds {self.row_count}"
            self._problem(file, None, what, "write a row of both for each step")

    def _problem(self, file: str, line: int | None, what: str, remedy: str, *, fatal: bool = True) -> None:
        self._note(Problem(file, line, what, remedy, fatal))

    def _note(self, problem: Problem) -> None:
        """Keep a problem once, and of each file no more than people read."""
        if problem in self._noted:
            return
        self._noted.add(problem)
        kind = (problem.file, problem.fatal)
        count = self._per_file[kind] = self._per_file.get(kind, 0) + 1
        if count <= MOST_PROBLEMS:
            self.problems.append(problem)
        elif count == MOST_PROBLEMS + 1:
            what = f"more than {MOST_PROBLEMS} problems; the others are left out"
            self.problems.append(Problem(problem.file, None, what, "remove the cause of the first", problem.fatal))


def _other_size(name: str, size: int, listed: int) -> Problem:
    return Problem(name, None, f"holds {size} bytes, the manifest says {listed}", _RUN_AGAIN)

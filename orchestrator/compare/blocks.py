"""A parted pair of which one run lies far away: the blocks that differ by their manifests are read, and no others.

A manifest holds the sha256 of diag.jsonl and bits.u64 by block of rows (256 by foxrun.RunWriter). Each block that is
read is checked against its hash, so that corruption is told from drift here too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foxrun.jsonio import loads
from foxrun.problems import ContractError
from foxrun.reader import Run
from foxrun.schema import BITS, DIAG, LEAVES, SUMMARY
from orchestrator.compare import verdict as v
from orchestrator.compare.beside import absent_files, compare_leaf_lists
from orchestrator.compare.divergence import Differences
from orchestrator.compare.findings import parted_rows, planted_value, untouched_leaves
from orchestrator.compare.hashes import ROWS, blocks_json, same_hashes, vouches
from orchestrator.compare.legs import Side
from orchestrator.compare.policy import Options
from orchestrator.compare.rows import RowComparison, lines_of
from orchestrator.compare.runs import compared_files, first_damaged, incomplete, policy_of
from orchestrator.compare.scan import finds_flip, plant_flip

_AGAIN = "copy the run directory again, or run the trainer again"


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """The blocks of one file of one run: byte k of `starts` to the next, and the sha256 of each."""

    run: Run
    name: str
    rows_per_block: int
    starts: tuple[int, ...]
    hashes: tuple[str, ...]

    def read(self, k: int) -> bytes:
        """Block k. Raises ContractError when it is not as the manifest says, or gone."""
        end = self.starts[k + 1] if k + 1 < len(self.hashes) else self.run.files[self.name]
        file = f"{self.run.label}/{self.name}"
        try:
            data = self.run.source.read_range(self.name, self.starts[k], end)
        except OSError as error:
            raise ContractError(f"cannot be read: {error}", file=file, remedy=_AGAIN) from None
        digest = hashlib.sha256(data).hexdigest()
        if digest != self.hashes[k]:
            what = f"the sha256 of block {k} is {digest[:16]}..., its own manifest says {self.hashes[k][:16]}..."
            raise ContractError(f"{what}: damaged later", file=file, remedy=_AGAIN)
        return data


def blocks_of(run: Run, name: str) -> Blocks | None:
    """The blocks that the manifest describes; None where they do not cover the file."""
    described = blocks_json(run, name)
    manifest = run.manifest or {}
    if not described or name not in run.files:
        return None
    per_block, starts, hashes = described["rows_per_block"], described["offsets"], described["sha256"]
    if per_block < 1 or len(hashes) != -(-manifest["rows"] // per_block) or not hashes:
        return None
    if starts[-1] >= run.files[name] or len(set(starts)) != len(starts):
        return None
    width = 8 * manifest["leaf_count"]
    if name == BITS and any(start != k * per_block * width for k, start in enumerate(starts)):
        return None
    return Blocks(run=run, name=name, rows_per_block=per_block, starts=tuple(starts), hashes=tuple(hashes))


def part_by_blocks(
    sides: tuple[Side, Side], a: Run, b: Run, options: Options, base: dict[str, Any], notes: list[str]
) -> v.Verdict | None:
    """The verdict on a parted pair by its differing blocks; None, with a note, where everything must be read.

    Blocks are read in order until one holds a difference that no tolerance forgives. Raises ContractError for damage.
    """
    names = compared_files(a, b)
    files = [name for name in ROWS if name in names]
    pairs: dict[str, tuple[Blocks, Blocks]] = {}
    if all(vouches(side, names) for side in sides):
        for name in files:
            of_a, of_b = blocks_of(a, name), blocks_of(b, name)
            if of_a is not None and of_b is not None:
                pairs[name] = (of_a, of_b)
    if len(pairs) < len(files) or len({x.rows_per_block for pair in pairs.values() for x in pair}) > 1:
        notes.append("the manifests do not describe both runs block by block: everything was read")
        return None
    parted = [name for name in names if not same_hashes(a, b, [name])]
    if not parted:
        return None
    for name in names:
        # Of the files of rows each block is checked when it is read.
        if name not in ROWS and (name in parted or name in (LEAVES, SUMMARY)):
            found = first_damaged(sides, name)
            if found is not None:
                return incomplete(*found, base)
    differences = Differences()
    absent = absent_files(sides, a, b, parted, differences, notes)
    if absent is not None:
        return v.make(v.INCOMPLETE, f"{absent}", next=absent.remedy, **base)
    policy = policy_of(sides, a, b, options)
    rows = RowComparison(a, b, policy, differences)
    compare_leaf_lists(a, b, LEAVES in parted, differences)
    walk = _BlockWalk(rows, pairs, all_differ=LEAVES in parted)
    walk.run()
    rows.diag_rows = [run.manifest["rows"] if run.manifest and DIAG in pairs else 0 for run in (a, b)]
    rows.note_missing_rows()
    notes.append(
        f"by the manifests' block hashes: {walk.differing} of {walk.total} blocks of rows differ, {walk.read} read"
        + (f" (rows {walk.first_row} to {walk.last_row})" if walk.read else "")
        + "; counts and growth are of these, --verify reads everything"
    )
    untouched = untouched_leaves(sides, rows) if rows.has_bits and walk.read == walk.differing else []
    return parted_rows(sides, a, b, parted, rows, policy, None, untouched, walk.flip, base, notes)


class _BlockWalk:
    """Compares the blocks that differ, in order, until one holds a difference that counts."""

    def __init__(self, rows: RowComparison, pairs: Mapping[str, tuple[Blocks, Blocks]], *, all_differ: bool) -> None:
        self._rows = rows
        self._pairs = pairs
        self._all_differ = all_differ  # other leaves, so that equal rows of fingerprints have other bytes
        self.total = self.differing = self.read = 0
        self.first_row = self.last_row = 0
        self.flip: v.PlantedFlip | None = None

    def run(self) -> None:
        """Walk all blocks that both runs have."""
        if not self._pairs:
            return
        differences = self._rows.differences
        before = (differences.total, differences.outside)
        per_block = next(iter(self._pairs.values()))[0].rows_per_block
        both = min(min(len(a.hashes), len(b.hashes)) for a, b in self._pairs.values())
        self.total = max(max(len(a.hashes), len(b.hashes)) for a, b in self._pairs.values())
        self.differing = self.total - both
        rows = min(int((run.manifest or {})["rows"]) for run in (self._rows.a, self._rows.b))
        for k in range(both):
            first, last = k * per_block, min(rows, (k + 1) * per_block) - 1
            differ = {name for name, (a, b) in self._pairs.items() if self._differs(name, a, b, k)}
            if not differ:
                self._rows.rows_agreed += last - first + 1
                continue
            self.differing += 1
            found = differences.total > before[0] if self._rows.policy.fast else differences.outside > before[1]
            if not found:
                self._compare(k, first, differ)
                self.first_row = self.first_row if self.read else first
                self.last_row = last
                self.read += 1

    def _differs(self, name: str, a: Blocks, b: Blocks, k: int) -> bool:
        return a.hashes[k] != b.hashes[k] or (name == BITS and self._all_differ)

    def _compare(self, k: int, first: int, differ: set[str]) -> None:
        words, texts = [], (b"", b"")
        if BITS in differ and self._rows.has_bits:
            a, b = (blocks.read(k) for blocks in self._pairs[BITS])
            words = [self._rows.block(a, b)]
            self.flip = self.flip or _planted_bit(a, [leaf.name for leaf in self._rows.a.leaves], first)
        if DIAG in self._pairs:
            of_a, of_b = self._pairs[DIAG]
            text = of_a.read(k)
            texts = (text, of_b.read(k) if DIAG in differ else text)
            self.flip = self.flip or _planted_text(text, first)
        lines = [lines_of(_split(text), first + 1) for text in texts]
        self._rows.walk(first, lines[0], lines[1], words)


def _split(text: bytes) -> Iterator[bytes]:
    """Lines with their ends; a lone carriage return ends none."""
    start = 0
    while (end := text.find(b"\n", start)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    if start < len(text):
        yield text[start:]


def _planted_bit(block: bytes, names: list[str], first: int) -> v.PlantedFlip | None:
    flip = plant_flip(block, len(names))
    if flip is None:
        return None
    return v.PlantedFlip(row=first + flip.row, leaf=names[flip.leaf], found=finds_flip(block, len(names), flip))


def _planted_text(text: bytes, first: int) -> v.PlantedFlip | None:
    for i, line in enumerate(_split(text)):
        row = loads(line, on_duplicate=lambda _: None)
        flip = planted_value(row, first + i) if isinstance(row, dict) else None
        if flip is not None:
            return flip
    return None

"""Rows of a book on the device: a file, or synthetic data, through chunks of one fixed shape in file order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.data.dbn import PRICE_SCALE, Records, read_records
from trainer.data.errors import DataError
from trainer.data.features import SCALARS, VARIABLES, features
from trainer.data.generate import encode_header, synthetic_blocks
from trainer.data.rows import Assembler, Rows

__all__ = ["SCALARS", "SYNTHETIC", "VARIABLES", "Book", "BookStream", "DataError"]

SYNTHETIC = "synthetic"
"""The source that stands for generated data instead of a file."""


@dataclass(frozen=True)
class Book:
    """One chunk of rows, all tensors on one device; n is the same for every chunk of a stream."""

    features: Tensor
    """float32 [n, VARIABLES, SCALARS], finite, of order 1; see docs/market.md."""
    bid_px: Tensor
    """float64 [n, 10], currency units; a missing level carries the last known better price, with size 0."""
    ask_px: Tensor
    bid_sz: Tensor
    """float32 [n, 10], the venue's size units."""
    ask_sz: Tensor
    trade_px: Tensor
    """float64 [n]: the farthest price of the stronger aggressor since the row before; 0 without a trade."""
    trade_sz: Tensor
    """float32 [n]: size that this aggressor traded at that price, + buy, - sell."""
    valid: Tensor
    """bool [n]: two-sided and uncrossed, so that orders can execute."""
    first_row: int
    """Number of row 0 in the whole stream."""

    @property
    def rows(self) -> int:
        """n, the number of rows."""
        return self.bid_px.shape[0]


class BookStream:
    """The rows of ``source`` (a DBN file, or "synthetic" with ``rows`` records and ``seed``) in chunks on ``device``.

    The file is read once to count its rows and to hash it, then again for each pass; memory holds about two chunks.
    DataError when it is no MBP-10 file or has fewer than ``min_rows`` rows.
    """

    rows_total: int
    """Rows in the source: whole book states of one instrument, from the first two-sided one on."""
    chunk_rows: int
    """Rows in every chunk: as asked, or rows_total when that is less."""
    chunks: int
    """Chunks in one pass."""
    instrument: int | None
    """Instrument id of the rows."""
    inputs: list[dict[str, str | int]]
    """For the manifest: name without directories, sha256, size in bytes."""
    skipped: dict[int, int]
    """Records of other instruments in the file, by instrument id: not used."""

    def __init__(
        self,
        source: str | Path,
        *,
        chunk_rows: int,
        device: torch.device | str,
        min_rows: int,
        rows: int = 0,
        seed: int = 0,
        instrument: int | None = None,
    ) -> None:
        if chunk_rows < 1:
            raise DataError(str(chunk_rows), "is no number of rows for a chunk", "give chunk_rows of 1 or more")
        self._source = source
        self._synthetic = str(source) == SYNTHETIC
        self._name = SYNTHETIC if self._synthetic else Path(source).name
        self._size, self._seed = rows, seed
        self._device = torch.device(device)
        if self._synthetic and rows < 1:
            raise DataError(SYNTHETIC, f"data of {rows} rows cannot be made", "give the parameter rows, 1 or more")
        assembler = Assembler(self._name, instrument)
        self.rows_total = sum(len(assembler.push(block)) for block in self._records())
        self.instrument, self.skipped = assembler.instrument, dict(sorted(assembler.skipped.items()))
        self._check(instrument, min_rows)
        self.inputs = [self._identity()]
        self.chunk_rows = min(chunk_rows, self.rows_total)
        self.chunks = -(-self.rows_total // self.chunk_rows)
        self._book: tuple[int, Book] | None = None
        self._pending: Iterator[Rows] = iter(())
        self._held: Rows | None = None  # rows from self._held_from on, already read
        self._held_from = 0

    def load(self, index: int) -> Book:
        """Chunk ``index`` modulo ``chunks``, always of ``chunk_rows`` rows: the last one reaches back to be full.

        Chunks in ascending order are read on from the last one; any other order reads from the start of the source.
        """
        chunk = index % self.chunks
        if self._book is None or self._book[0] != chunk:
            start = min(chunk * self.chunk_rows, self.rows_total - self.chunk_rows)
            self._book = (chunk, _on_device(self._rows(start), start, self._device))
        return self._book[1]

    def describe(self) -> str:
        """One line for people: rows, instrument, chunks, and what was left out."""
        text = f"{self._name}: {self.rows_total} rows of instrument {self.instrument} in {self.chunks} chunks"
        if self.skipped:
            others = ", ".join(f"{number} ({count} records)" for number, count in list(self.skipped.items())[:10])
            text += f"; skipped instruments {others}" + (", ..." if len(self.skipped) > 10 else "")
        return text

    def _records(self) -> Iterator[Records]:
        if self._synthetic:
            return synthetic_blocks(self._size, self._seed)
        return read_records(Path(self._source))

    def _check(self, wanted: int | None, min_rows: int) -> None:
        if wanted is not None and self.rows_total == 0 and self.skipped:
            known = ", ".join(str(number) for number in list(self.skipped)[:10])
            raise DataError(self._name, f"has no rows of instrument {wanted}", f"it holds {known}: give one of these")
        if self.rows_total < max(min_rows, 1):
            problem = (
                f"has {self.rows_total} usable rows of instrument {self.instrument}; needed are {max(min_rows, 1)}"
            )
            remedy = "give a longer file (rows count from the first two-sided state of the book)"
            if self._synthetic:
                remedy = "give a larger parameter rows"
            elif self.skipped:
                remedy += f" or another instrument of this one: {', '.join(str(n) for n in list(self.skipped)[:10])}"
            raise DataError(self._name, problem, remedy)

    def _identity(self) -> dict[str, str | int]:
        digest, size = hashlib.sha256(), 0
        if self._synthetic:
            for piece in (encode_header(self._seed), *(b.tobytes() for b in self._records())):
                digest.update(piece)
                size += len(piece)
            name = f"synthetic-{self._size}-{self._seed}.dbn"
            return {"name": name, "sha256": digest.hexdigest(), "size": size}
        with Path(self._source).open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                size += len(piece)
        return {"name": self._name, "sha256": digest.hexdigest(), "size": size}

    def _rows(self, start: int) -> Rows:
        """Rows start..start+chunk_rows-1, read on from what is held where possible."""
        if self._held is None or start < self._held_from:
            assembler = Assembler(self._name, self.instrument)
            self._pending = (assembler.push(block) for block in self._records())
            self._held, self._held_from = next(self._pending), 0
        while (there := self._held_from + len(self._held)) < start + self.chunk_rows:
            keep = min(start, there) - self._held_from
            more = next(self._pending, None)
            if more is None:
                raise DataError(self._name, f"now ends at row {there}", "it changed while it was read: run again")
            self._held, self._held_from = self._held.part(keep, len(self._held)).joined(more), self._held_from + keep
        first = start - self._held_from
        self._held, self._held_from = self._held.part(first, len(self._held)), start
        return self._held.part(0, self.chunk_rows)


def _on_device(rows: Rows, first_row: int, device: torch.device) -> Book:
    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    # One correctly rounded division: the float64 nearest to the decimal price, so equal prices have equal bits.
    def price(array: NDArray[np.int64]) -> Tensor:
        return tensor(array.astype(np.float64) / PRICE_SCALE)

    return Book(
        features=tensor(features(rows)),
        bid_px=price(rows.bid_px),
        ask_px=price(rows.ask_px),
        bid_sz=tensor(rows.bid_sz.astype(np.float32)),
        ask_sz=tensor(rows.ask_sz.astype(np.float32)),
        trade_px=price(rows.trade_px),
        trade_sz=tensor(rows.trade_sz.astype(np.float32)),
        valid=tensor(rows.valid),
        first_row=first_row,
    )

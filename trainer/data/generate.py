"""Synthetic MBP-10 market data in valid DBN version 3, a function of (rows, seed) alone.

    python -m trainer.data.generate --rows 20000 --seed 7 book.dbn.zst

Integer arithmetic and counter-based randomness give the same bytes on every machine; the promise is for the
uncompressed stream, since zstd's output depends on its version.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import databento_dbn
import numpy as np
import zstandard
from numpy.typing import NDArray

from trainer.data.dbn import (
    F_LAST,
    F_SNAPSHOT,
    LEVELS,
    RECORD,
    RTYPE_MBP_10,
    UNDEF_PRICE,
    WORD,
    Records,
)

TICK = 250_000_000
"""Price step: 0.25 in units of 1e-9."""
START_TICK = 20_000
"""First mid price in ticks: 5,000.00."""
START_NS = 1_735_741_800_000_000_000
"""Time of the first record: 2025-01-01 14:30 UTC."""
INSTRUMENT = 1
PUBLISHER = 1
ZSTD_LEVEL = 3
BLOCK_ROWS = 8192

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(seed: int, stream: int, start: int, count: int) -> NDArray[np.uint64]:
    """64 random bits for each counter start..start+count-1 of (seed, stream), Steele et al. 2014; no state."""
    base = (seed * 0xD1342543DE82EF95 + stream * 0x2545F4914F6CDD1D) % 2**64
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64) * _GOLDEN + np.uint64(base)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class _Side:
    """One side of the book: [tick, size] from the best on; ``out`` is +1 for asks, -1 for bids (away from the mid)."""

    def __init__(self, best: int, out: int) -> None:
        self.out = out
        self.levels = [[best + out * level, 20 + 5 * level] for level in range(LEVELS)]

    def take(self, depth: int, size: int) -> int:
        """Remove up to ``size`` at ``depth``; the size removed. An emptied level goes."""
        taken = min(size, self.levels[depth][1])
        self.levels[depth][1] -= taken
        if self.levels[depth][1] == 0:
            del self.levels[depth]
        return taken

    def extend(self, gap: int, size: int) -> int:
        """A new level behind the last, ``gap`` ticks away; its depth."""
        self.levels.append([self.levels[-1][0] + self.out * gap, size])
        return len(self.levels) - 1

    def improve(self, size: int) -> int:
        """A new best level one tick inside; its depth, 0."""
        self.levels.insert(0, [self.levels[0][0] - self.out, size])
        del self.levels[LEVELS:]
        return 0


class _Market:
    """The book and the pressure that moves it, a random walk drawn back to 0: buys are likelier above it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.bid, self.ask = _Side(START_TICK, -1), _Side(START_TICK + 1, 1)
        self.pressure = 0
        self.ts = START_NS
        self.pending: tuple[_Side, int] | None = None  # a trade that the next record takes out of the book

    def block(self, start: int, count: int) -> Records:
        out = np.zeros(count, RECORD)
        out["length"], out["rtype"] = RECORD.itemsize // WORD, RTYPE_MBP_10
        out["publisher_id"], out["instrument_id"] = PUBLISHER, INSTRUMENT
        out["sequence"] = np.arange(start + 1, start + count + 1)
        out["ts_in_delta"] = 12_000
        kind, amount, wait = (splitmix64(self.seed, stream, start, count).tolist() for stream in (1, 2, 3))
        prices = np.full((count, 2, LEVELS), UNDEF_PRICE, np.int64)
        sizes = np.zeros((count, 2, LEVELS), np.int64)
        events = []
        for row in range(count):
            if start + row == 0:
                events.append((b"R", b"N", UNDEF_PRICE, 0, 0, F_LAST, self.ts))
                continue
            events.append(self._event(start + row, kind[row], amount[row], wait[row]))
            for side, book in enumerate((self.bid, self.ask)):
                count_there = len(book.levels)
                prices[row, side, :count_there] = [tick * TICK for tick, _ in book.levels]
                sizes[row, side, :count_there] = [size for _, size in book.levels]
        for name, column in zip(
            ("action", "side", "price", "size", "depth", "flags", "ts_recv"), zip(*events, strict=True), strict=True
        ):
            out[name] = column
        out["ts_event"] = out["ts_recv"] - np.uint64(15_000)
        for side, name in enumerate(("bid", "ask")):
            out["levels"][f"{name}_px"] = prices[:, side]
            out["levels"][f"{name}_sz"] = sizes[:, side]
            out["levels"][f"{name}_ct"] = (sizes[:, side] + 7) // 8
        return out

    def _event(self, row: int, kind: int, amount: int, wait: int) -> tuple[bytes, bytes, int, int, int, int, int]:
        """(action, side, price, size, depth, flags, ts_recv) of one record, after changing the book."""
        if row == 1:
            return b"A", b"B", self.bid.levels[0][0] * TICK, self.bid.levels[0][1], 0, F_LAST | F_SNAPSHOT, self.ts
        if self.pending is not None:
            book, size = self.pending
            self.pending = None
            tick = book.levels[0][0]
            return self._record(b"C", book, tick, book.take(0, size), 0, F_LAST)
        # Mostly some microseconds, at times milliseconds, and one in eight at the same instant as the record before.
        self.ts += 0 if wait & 7 == 0 else 1_000 + (wait >> 8) % (1 << (10 + (wait >> 3) % 13))
        if kind & 63 == 0:
            self.pressure += 1 if (kind >> 6) % 32 < 16 - self.pressure else -1
        up = (kind >> 16) % 32 < 16 + self.pressure
        near, far = (self.bid, self.ask) if up else (self.ask, self.bid)  # grows, shrinks
        what = (kind >> 32) % 100
        size = 1 + (amount % 8) * (1 + (amount >> 8) % 4)
        there = far.levels[0][1] - (1 if len(far.levels) == 1 else 0)  # never empty a side
        if what < 12 and there > 0:
            # A market order takes from the best level: the trade, with the book as before, then the change.
            self.pending = (far, min(size * (1 + (amount >> 16) % 4), there))
            return b"T", b"B" if up else b"A", far.levels[0][0] * TICK, self.pending[1], 0, 0, self.ts
        if what < 40 and self.ask.levels[0][0] - self.bid.levels[0][0] > 1:
            depth = near.improve(size)
            return self._record(b"A", near, near.levels[0][0], size, depth, F_LAST)
        short = self.bid if len(self.bid.levels) < len(self.ask.levels) else self.ask
        if what < 60 and len(short.levels) < LEVELS:
            depth = short.extend(1 + (amount >> 24) % 8 // 6, size)
            return self._record(b"A", short, short.levels[depth][0], size, depth, F_LAST)
        depth = min((amount >> 32) % 16, (amount >> 40) % 16)
        if what >= 70:
            depth %= len(far.levels)
            tick, there = far.levels[depth]
            size = min(size, there - 1 if len(far.levels) == 1 else there)
            if size > 0:
                return self._record(b"C", far, tick, far.take(depth, size), depth, F_LAST)
            size = 1
        depth %= len(near.levels)
        near.levels[depth][1] += size
        return self._record(b"A", near, near.levels[depth][0], size, depth, F_LAST)

    def _record(
        self, action: bytes, book: _Side, tick: int, size: int, depth: int, flags: int
    ) -> tuple[bytes, bytes, int, int, int, int, int]:
        return action, b"A" if book.out > 0 else b"B", tick * TICK, size, depth, flags, self.ts


def synthetic_blocks(rows: int, seed: int) -> Iterator[Records]:
    """``rows`` MBP-10 records in blocks of at most 8192."""
    market = _Market(seed)
    for start in range(0, rows, BLOCK_ROWS):
        yield market.block(start, min(BLOCK_ROWS, rows - start))


def synthetic_records(rows: int, seed: int) -> Records:
    """``rows`` MBP-10 records as one structured array of dtype ``dbn.RECORD``."""
    return np.concatenate([np.empty(0, RECORD), *synthetic_blocks(rows, seed)])


def encode_header(seed: int) -> bytes:
    """The metadata of a synthetic file, DBN version 3."""
    metadata: Any = databento_dbn.Metadata(
        dataset="FOXRUN.SYNTH",
        start=START_NS,
        stype_in=databento_dbn.SType("raw_symbol"),
        stype_out=databento_dbn.SType("instrument_id"),
        schema=databento_dbn.Schema("mbp-10"),
        symbols=[f"SYNTH{seed}"],
        version=3,
    )
    return bytes(metadata.encode())


def write(path: Path, *, rows: int, seed: int) -> None:
    """Write ``rows`` records to ``path``, zstd-compressed when its name ends in .zst; whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            if path.suffix == ".zst":
                with zstandard.ZstdCompressor(level=ZSTD_LEVEL).stream_writer(file, closefd=False) as packed:
                    _write(packed, rows, seed)
            else:
                _write(file, rows, seed)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write(file: Any, rows: int, seed: int) -> None:
    file.write(encode_header(seed))
    for block in synthetic_blocks(rows, seed):
        file.write(block.tobytes())


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.data.generate", description="Write synthetic but valid DBN MBP-10 data."
    )
    parser.add_argument("--rows", type=int, default=20_000, help="records to write (default 20000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives another market (default 0)")
    parser.add_argument("out", type=Path, metavar="OUT", help="file to write: .dbn, or .dbn.zst for zstd")
    given = parser.parse_args(arguments)
    if given.rows < 2:
        parser.error("--rows must be 2 or more")
    try:
        write(given.out, rows=given.rows, seed=given.seed)
    except OSError as error:
        sys.stderr.write(f"{given.out}: cannot be written ({error.strerror}); check the directory and its space\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Hand-made books and DBN files for the tests of data and market."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import databento_dbn
import numpy as np
import pytest
import torch

from trainer.data.book import SCALARS, VARIABLES, Book
from trainer.data.dbn import F_LAST, RECORD, UNDEF_PRICE, Records
from trainer.data.generate import encode_header

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "mbp10"
BTC = SHARED / "btcusdt-binance-usdm-20240808.mbp-10.dbn.zst"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the real data folder {SHARED} is absent")

Side = Sequence[tuple[float, float]]


def record(
    bids: Sequence[tuple[float, int]],
    asks: Sequence[tuple[float, int]],
    *,
    action: str = "A",
    side: str = "N",
    price: float | None = None,
    size: int = 0,
    flags: int = F_LAST,
    ts: int = 0,
    instrument: int = 7,
) -> Records:
    """One MBP-10 record; prices in currency units; levels that are not given have no price."""
    row = np.zeros(1, RECORD)
    row["length"], row["rtype"] = 92, 10
    row["instrument_id"], row["action"], row["side"] = instrument, action.encode(), side.encode()
    row["price"] = UNDEF_PRICE if price is None else round(price * 10**9)
    row["size"], row["flags"], row["ts_recv"], row["ts_event"] = size, flags, ts, ts
    row["levels"]["bid_px"], row["levels"]["ask_px"] = UNDEF_PRICE, UNDEF_PRICE
    for name, levels in (("bid", bids), ("ask", asks)):
        for depth, (level_price, level_size) in enumerate(levels):
            row["levels"][f"{name}_px"][0, depth] = round(level_price * 10**9)
            row["levels"][f"{name}_sz"][0, depth] = level_size
    return row


def write_dbn(path: Path, *records: Records) -> Path:
    """A DBN file of these records."""
    path.write_bytes(encode_header(0) + b"".join(r.tobytes() for r in records))
    return path


def decoded(path: Path) -> list[databento_dbn.MBP10Msg]:
    """All records by the vendor's own decoder."""
    data = path.read_bytes()
    zstd = data[:4] == b"\x28\xb5\x2f\xfd"
    decoder = databento_dbn.DBNDecoder(
        compression=databento_dbn.Compression.ZSTD if zstd else databento_dbn.Compression.NONE
    )
    decoder.write(data)
    return list(decoder.decode()[1:])


def book(rows: Sequence[tuple[Side, Side]], trades: dict[int, tuple[float, float]] | None = None) -> Book:
    """A chunk of rows of (bids, asks), each [(price, size)] from the best on, with trades {row: (price, signed size)}.

    A side without levels makes the row invalid and carries the price before.
    """
    count = len(rows)
    px, sz = torch.zeros(2, count, 10, dtype=torch.float64), torch.zeros(2, count, 10)
    valid = torch.ones(count, dtype=torch.bool)
    for row, sides in enumerate(rows):
        for side, levels in enumerate(sides):
            if not levels:
                valid[row] = False
                px[side, row] = px[side, row - 1, 0]
            for depth in range(10 if levels else 0):
                px[side, row, depth] = levels[min(depth, len(levels) - 1)][0]
                sz[side, row, depth] = levels[depth][1] if depth < len(levels) else 0
    valid &= px[0, :, 0] < px[1, :, 0]
    trade_px, trade_sz = torch.zeros(count, dtype=torch.float64), torch.zeros(count)
    for row, (price, size) in (trades or {}).items():
        trade_px[row], trade_sz[row] = price, size
    features = torch.arange(count, dtype=torch.float32)[:, None, None].expand(count, VARIABLES, SCALARS).contiguous()
    return Book(features, px[0], px[1], sz[0], sz[1], trade_px, trade_sz, valid, 0)

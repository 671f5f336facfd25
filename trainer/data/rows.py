"""From MBP-10 records to rows: one row for each whole state of one instrument's book, with the trades since the last.

Everything here is integer arithmetic, and a row depends on the records before it alone, never on how the stream was
cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from trainer.data.dbn import F_LAST, F_MAYBE_BAD_BOOK, RECORD, UNDEF_PRICE, Records
from trainer.data.errors import DataError

Ints = NDArray[np.int64]

LONGEST_EVENT = 1 << 20
"""Records without F_LAST after which a file is taken for one that never sets the flag."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """n rows. Prices in units of 1e-9, sizes in the venue's units, times in nanoseconds since 1970 UTC."""

    ts: Ints
    bid_px: Ints
    """[n, 10]. A level without a price carries the next better one's, an empty side the last best, with size 0."""
    ask_px: Ints
    bid_sz: Ints
    ask_sz: Ints
    valid: NDArray[np.bool_]
    """Both sides are there, uncrossed and of positive size, and the venue does not call the book doubtful."""
    trade_px: Ints
    """The farthest price that the stronger aggressor traded at since the row before; 0 without a trade."""
    trade_sz: Ints
    """The size traded at that price by that aggressor, + buy, - sell. Trades of the weaker side are not in it."""
    flow: Ints
    """All size bought less all size sold by aggressors since the row before."""
    trade_count: Ints
    before_ts: Ints
    """Time, best bid and best ask of the row before (the first row: its own)."""
    before_bid: Ints
    before_ask: Ints

    def __len__(self) -> int:
        return len(self.ts)

    def part(self, start: int, stop: int) -> Self:
        """Rows start..stop-1."""
        return type(self)(**{field.name: getattr(self, field.name)[start:stop] for field in fields(self)})

    def joined(self, later: Self) -> Self:
        """These rows and then the later ones."""
        return type(self)(
            **{f.name: np.concatenate([getattr(self, f.name), getattr(later, f.name)]) for f in fields(self)}
        )


class Assembler:
    """Turns blocks of records into rows. Rows begin with the first valid one: before it there is nothing to trade.

    Trades of records in the middle of an event count for the row that ends the event. Records of other instruments
    than ``instrument`` (None: that of the first record) are counted in ``skipped``, by instrument id.
    """

    def __init__(self, name: str, instrument: int | None = None) -> None:
        self.instrument = instrument
        self.skipped: dict[int, int] = {}
        self._name = name
        self._tail: Records = np.empty(0, RECORD)
        self._last: tuple[int, int, int] | None = None  # ts, best bid, best ask of the last row

    def push(self, records: Records) -> Rows:
        """The rows that these records complete."""
        records = np.concatenate([self._tail, self._of_instrument(records)])
        ends = np.flatnonzero(records["flags"] & F_LAST)
        whole = int(ends[-1]) + 1 if len(ends) else 0
        self._tail = records[whole:]
        if len(self._tail) > LONGEST_EVENT:
            problem = (
                f"has {len(self._tail)} records in a row without the flag F_LAST, so no state of its book is whole"
            )
            raise DataError(self._name, problem, "give data in which the last record of an event is marked")
        return self._rows(records[:whole], ends)

    def _of_instrument(self, records: Records) -> Records:
        ids = records["instrument_id"]
        if self.instrument is None and len(ids):
            self.instrument = int(ids[0])
        mine = ids == self.instrument
        if bool(mine.all()):
            return records
        others, counts = np.unique(ids[~mine], return_counts=True)
        for other, count in zip(others.tolist(), counts.tolist(), strict=True):
            self.skipped[other] = self.skipped.get(other, 0) + count
        kept: Records = records[mine]
        return kept

    def _rows(self, records: Records, ends: Ints) -> Rows:
        state = records[ends]
        levels = state["levels"]
        bid_px, ask_px = levels["bid_px"].astype(np.int64), levels["ask_px"].astype(np.int64)
        bid_sz = np.where(bid_px == UNDEF_PRICE, 0, levels["bid_sz"]).astype(np.int64)
        ask_sz = np.where(ask_px == UNDEF_PRICE, 0, levels["ask_sz"]).astype(np.int64)
        valid = (bid_px[:, 0] != UNDEF_PRICE) & (ask_px[:, 0] != UNDEF_PRICE) & (bid_px[:, 0] < ask_px[:, 0])
        valid &= (bid_sz[:, 0] > 0) & (ask_sz[:, 0] > 0) & ((state["flags"] & F_MAYBE_BAD_BOOK) == 0)
        trades = _trades(records, ends)
        start = 0
        if self._last is None:
            good = np.flatnonzero(valid)
            start = int(good[0]) if len(good) else len(valid)
        bid_px, ask_px = bid_px[start:], ask_px[start:]
        ts = np.minimum(state["ts_recv"][start:], np.uint64(2**63 - 1)).astype(np.int64)
        if self._last is None and len(ts):
            self._last = (int(ts[0]), int(bid_px[0, 0]), int(ask_px[0, 0]))
        last = self._last or (0, 0, 0)
        _carry(bid_px, last[1])
        _carry(ask_px, last[2])
        before_ts, before_bid, before_ask = (
            np.concatenate([np.array([first], np.int64), column[:-1]]) if len(column) else column
            for first, column in zip(last, (ts, bid_px[:, 0], ask_px[:, 0]), strict=True)
        )
        if len(ts):
            self._last = (int(ts[-1]), int(bid_px[-1, 0]), int(ask_px[-1, 0]))
        trade_px, trade_sz, flow, count = (column[start:] for column in trades)
        return Rows(
            ts=ts,
            bid_px=bid_px,
            ask_px=ask_px,
            bid_sz=bid_sz[start:],
            ask_sz=ask_sz[start:],
            valid=valid[start:],
            trade_px=trade_px,
            trade_sz=trade_sz,
            flow=flow,
            trade_count=count,
            before_ts=before_ts,
            before_bid=before_bid,
            before_ask=before_ask,
        )


def _carry(price: Ints, last: int) -> None:
    """Fill prices that do not exist, in place: the best from the row before, a level from the next better one."""
    if not len(price):
        return
    best = price[:, 0]
    known = np.where(best != UNDEF_PRICE, np.arange(1, len(best) + 1), 0)
    source = np.maximum.accumulate(known)
    price[:, 0] = np.concatenate([np.array([last], np.int64), best])[source]
    for level in range(1, price.shape[1]):
        price[:, level] = np.where(price[:, level] == UNDEF_PRICE, price[:, level - 1], price[:, level])


def _trades(records: Records, ends: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """(price, signed size at it, net flow, count) of the trades of each event, each [events]; see Rows."""
    events = len(ends)
    trade = (records["action"] == b"T") & (records["price"] != UNDEF_PRICE) & (records["size"] > 0)
    rows = records[trade]
    event = np.searchsorted(ends, np.flatnonzero(trade))
    price, size = rows["price"].astype(np.int64), rows["size"].astype(np.int64)
    side = _aggressor(rows)
    total, extreme, at = [], [], []
    for sign, pick, worst in ((1, np.maximum, -UNDEF_PRICE), (-1, np.minimum, UNDEF_PRICE)):
        mine = side == sign
        volume, far, far_volume = np.zeros(events, np.int64), np.full(events, worst), np.zeros(events, np.int64)
        np.add.at(volume, event[mine], size[mine])
        pick.at(far, event[mine], price[mine])
        farthest = mine & (price == far[event])
        np.add.at(far_volume, event[farthest], size[farthest])
        total.append(volume)
        extreme.append(far)
        at.append(far_volume)
    buys = total[0] >= total[1]
    none = (total[0] == 0) & (total[1] == 0)
    trade_px = np.where(none, 0, np.where(buys, extreme[0], extreme[1]))
    trade_sz = np.where(none, 0, np.where(buys, at[0], -at[1]))
    return trade_px, trade_sz, total[0] - total[1], np.bincount(event, minlength=events).astype(np.int64)


def _aggressor(rows: Records) -> Ints:
    """+1 a buyer, -1 a seller, 0 unknown. Where the venue does not say: the quote rule (Lee and Ready 1991)."""
    side = (rows["side"] == b"B").astype(np.int64) - (rows["side"] == b"A").astype(np.int64)
    best = rows["levels"][:, 0]
    quoted = (best["bid_px"] != UNDEF_PRICE) & (best["ask_px"] != UNDEF_PRICE) & (side == 0)
    above_bid, below_ask = rows["price"] - best["bid_px"], best["ask_px"] - rows["price"]
    signs: Ints = np.where(quoted, np.sign(above_bid - below_ask), side)
    return signs

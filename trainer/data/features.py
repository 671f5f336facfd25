"""What the agent sees of a row: 12 variables of 4 scalars, each of order 1 and within -10..10.

Only additions, products, quotients and square roots of float64, each rounded as IEEE 754 demands and none summed
over an axis, so every machine computes the same bits; ``log`` is our own because C libraries differ in theirs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainer.data.dbn import LEVELS
from trainer.data.rows import Rows

VARIABLES = LEVELS + 2
SCALARS = 4
LIMIT = 10.0
"""Every feature is cut to -LIMIT..LIMIT."""

Floats = NDArray[np.float64]

_LN2 = math.log(2.0)
_SQRT_HALF = 0.7071067811865476


def features(rows: Rows) -> NDArray[np.float32]:
    """Features [n, VARIABLES, SCALARS], finite; definitions in docs/market.md.

    0..9 (levels): distance of bid and of ask from the mid price, log size of bid and of ask.
    10 (trades since the row before): net size, how far beyond the old best, how many, price against the mid.
    11 (book): move of the mid, spread, imbalance of the best sizes, time since the row before.
    """
    count = len(rows)
    bid, ask = rows.bid_px.astype(np.float64), rows.ask_px.astype(np.float64)
    mid = (bid[:, 0] + ask[:, 0]) * 0.5
    before_bid, before_ask = rows.before_bid.astype(np.float64), rows.before_ask.astype(np.float64)
    before_mid = (before_bid + before_ask) * 0.5
    scale = np.maximum(np.abs(mid), 1.0)  # one price unit of 1e-9: spreads of futures may well have a mid of 0
    out = np.empty((count, VARIABLES, SCALARS), np.float64)

    out[:, :LEVELS, 0] = _root_bp(mid[:, None] - bid, scale[:, None])
    out[:, :LEVELS, 1] = _root_bp(ask - mid[:, None], scale[:, None])
    out[:, :LEVELS, 2] = log1p(rows.bid_sz.astype(np.float64)) / 8
    out[:, :LEVELS, 3] = log1p(rows.ask_sz.astype(np.float64)) / 8

    traded = rows.trade_sz != 0
    price = np.where(traded, rows.trade_px.astype(np.float64), mid)
    flow = rows.flow.astype(np.float64)
    beyond = np.where(rows.trade_sz > 0, np.maximum(price - before_ask, 0.0), np.minimum(price - before_bid, 0.0))
    out[:, LEVELS, 0] = np.sign(flow) * log1p(np.abs(flow)) / 8
    out[:, LEVELS, 1] = _root_bp(np.where(traded, beyond, 0.0), scale)
    out[:, LEVELS, 2] = log1p(rows.trade_count.astype(np.float64)) / 2
    out[:, LEVELS, 3] = _root_bp(price - mid, scale)

    bid_sz, ask_sz = rows.bid_sz[:, 0].astype(np.float64), rows.ask_sz[:, 0].astype(np.float64)
    waited = np.maximum(rows.ts - rows.before_ts, 0).astype(np.float64) / 1000
    out[:, LEVELS + 1, 0] = _root_bp(mid - before_mid, scale)
    out[:, LEVELS + 1, 1] = _root_bp(ask[:, 0] - bid[:, 0], scale)
    out[:, LEVELS + 1, 2] = (bid_sz - ask_sz) / np.maximum(bid_sz + ask_sz, 1.0)
    out[:, LEVELS + 1, 3] = log1p(waited) / 10
    return np.clip(out, -LIMIT, LIMIT).astype(np.float32)


def _root_bp(difference: Floats, scale: Floats) -> Floats:
    """Signed square root of a difference in basis points of ``scale``: tame for wide books, fine for tight ones."""
    return np.sign(difference) * np.sqrt(np.abs(difference) / scale * 1e4)


def log1p(value: Floats) -> Floats:
    """Natural logarithm of 1 + value for value >= 0, the same bits on every machine; within 2 ulp of the true value
    for whole numbers: ln 2^e m = e ln 2 + 2 artanh((m - 1) / (m + 1)), with m in sqrt(1/2)..sqrt(2).
    """
    mantissa, exponent = np.frexp(value + 1.0)
    low = mantissa < _SQRT_HALF
    mantissa = np.where(low, mantissa * 2, mantissa)
    power = exponent.astype(np.float64) - low
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.full_like(ratio, 1.0 / 25.0)
    for odd in range(23, 0, -2):
        series = series * square + 1.0 / odd
    result: Floats = power * _LN2 + 2.0 * ratio * series
    return result

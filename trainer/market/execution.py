"""How orders meet the book: walking the levels, waiting in the queue, and booking what was traded.

Elementwise arithmetic in a written order and index_select alone, so that every environment's bits are its own and
no size depends on data.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trainer.data.book import Book
from trainer.data.dbn import LEVELS
from trainer.market.config import MarketConfig
from trainer.market.state import MarketState


class Quote(NamedTuple):
    """The rows of the book that b environments stand on."""

    bid_px: Tensor
    """float64 [b, 10]"""
    ask_px: Tensor
    bid_sz: Tensor
    """float32 [b, 10]"""
    ask_sz: Tensor
    valid: Tensor
    """bool [b]"""
    mid: Tensor
    """float64 [b]"""


def quote(book: Book, cursor: Tensor) -> Quote:
    """The book at ``cursor`` int64 [b]."""
    bid_px, ask_px = book.bid_px.index_select(0, cursor), book.ask_px.index_select(0, cursor)
    return Quote(
        bid_px=bid_px,
        ask_px=ask_px,
        bid_sz=book.bid_sz.index_select(0, cursor),
        ask_sz=book.ask_sz.index_select(0, cursor),
        valid=book.valid.index_select(0, cursor),
        mid=(bid_px[:, 0] + ask_px[:, 0]) * 0.5,
    )


def walk(at: Quote, buy: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(value, missing, worst price), each float64 [b], of taking ``size`` float64 [b] from the asks or the bids.

    value: sum of price times size taken, from the best level on. missing: size that ten levels do not have.
    """
    prices = torch.where(buy[:, None], at.ask_px, at.bid_px).unbind(1)
    sizes = torch.where(buy[:, None], at.ask_sz, at.bid_sz).double().unbind(1)
    missing, value = size, torch.zeros_like(size)
    for price, there in zip(prices, sizes, strict=True):
        taken = torch.minimum(missing, there)
        value = value + taken * price
        missing = missing - taken
    return value, missing, prices[LEVELS - 1]


def displayed(at: Quote, side: Tensor, price: Tensor) -> tuple[Tensor, Tensor]:
    """(size shown at ``price`` on ``side``, whether it is known), float32 and bool [b].

    A price that no level has is known to be 0 down to the tenth level, and unknown beyond it or on an invalid row.
    """
    buy = side > 0
    prices = torch.where(buy[:, None], at.bid_px, at.ask_px)
    sizes = torch.where(buy[:, None], at.bid_sz, at.ask_sz)
    # A missing level repeats a price with size 0; of equal prices the largest size is the real one.
    shown = torch.where(prices == price[:, None], sizes, 0.0).amax(1)
    last = prices[:, LEVELS - 1]
    known = at.valid & torch.where(buy, price >= last, price <= last)
    return shown, known


def book_trade(
    state: MarketState, config: MarketConfig, units: Tensor, value: Tensor, fee_bp: float, step: Tensor
) -> MarketState:
    """The state after trading ``units`` (int64 [b], + buy, 0 none) for ``value`` (float64 [b], price times size).

    Units that reduce the position realise their gain against the average entry price; the rest opens or adds.
    """
    size = units.abs().double()
    traded = units != 0
    price = torch.where(traded, value / torch.where(traded, size * config.order_size, 1.0), 0.0)
    fee = torch.where(traded, value.abs() * config.multiplier * (fee_bp * 1e-4), 0.0)
    signed = units.sign().double()
    cash = state.cash - torch.where(traded, signed * value * config.multiplier, 0.0) - fee

    held = state.position_units
    against = (held.sign() * units.sign()) < 0
    closed = torch.where(against, torch.minimum(held.abs(), units.abs()), 0)
    closed_part = closed.double() / held.abs().clamp(min=1).double()
    opened_size = size - closed.double()
    fee_closing = fee * (closed.double() / torch.where(traded, size, 1.0))
    fees_given_up = state.entry_fees * closed_part
    gain = (price - state.entry_px) * held.sign().double() * closed.double() * config.value_per_price
    net = torch.where(closed > 0, gain - fee_closing - fees_given_up, 0.0)

    position = held + units
    kept = (held.abs() - closed).double()
    opens = opened_size > 0
    entry_px = torch.where(
        opens, (state.entry_px * kept + price * opened_size) / (kept + opened_size).clamp(min=1.0), state.entry_px
    )
    flat = position == 0
    opened_now = opens & (kept == 0)
    closing = closed > 0
    return state._replace(
        position_units=position,
        entry_step=torch.where(flat, -1, torch.where(opened_now, step, state.entry_step)),
        entry_px=torch.where(flat, 0.0, entry_px),
        entry_fees=torch.where(flat, 0.0, state.entry_fees - fees_given_up + (fee - fee_closing)),
        cash=cash,
        realised=state.realised + net,
        trades=state.trades + closing,
        wins=state.wins + (closing & (net > 0)),
        fees=state.fees + fee,
    )


def cancel(state: MarketState, which: Tensor) -> MarketState:
    """The state without the resting order where ``which`` bool [b] holds."""
    return state._replace(
        order_side=torch.where(which, 0, state.order_side),
        order_px=torch.where(which, 0.0, state.order_px),
        queue_ahead=torch.where(which, 0.0, state.queue_ahead),
        queue_traded=torch.where(which, 0.0, state.queue_traded),
        order_age=torch.where(which, 0, state.order_age),
    )


def post(state: MarketState, which: Tensor, side: Tensor, price: Tensor, ahead: Tensor) -> MarketState:
    """The state with a new order at the end of the queue at ``price`` where ``which`` bool [b] holds."""
    return state._replace(
        order_side=torch.where(which, side, state.order_side),
        order_px=torch.where(which, price, state.order_px),
        queue_ahead=torch.where(which, ahead, state.queue_ahead),
        queue_traded=torch.where(which, 0.0, state.queue_traded),
        order_age=torch.where(which, 0, state.order_age),
    )


def rest(
    state: MarketState,
    config: MarketConfig,
    before: Quote,
    now: Quote,
    trade_px: Tensor,
    trade_sz: Tensor,
    step: Tensor,
) -> MarketState:
    """Move the resting order on by one row, from ``before`` to ``now``, and fill it where its turn has come.

    It fills whole: when its price is traded through or crossed by the other side, or when trades at its price have
    used up the queue and then its own size. Cancellations take from the queue pro rata and never fill it.
    """
    side, price = state.order_side, state.order_px
    resting = (side != 0) & now.valid
    buy = side > 0
    hits = torch.where(buy, trade_sz < 0, trade_sz > 0)
    through = hits & torch.where(buy, trade_px < price, trade_px > price)
    crossed = torch.where(buy, now.ask_px[:, 0] <= price, now.bid_px[:, 0] >= price)
    volume = torch.where(hits & (trade_px == price), trade_sz.abs(), 0.0)

    ahead = state.queue_ahead - volume
    shown_before, known_before = displayed(before, side, price)
    shown, known = displayed(now, side, price)
    gone = torch.where(known & known_before, (shown_before - shown).clamp(min=0.0), 0.0)
    # Feeds show a trade and the size that it took in one row or in two: what trades explain is no cancellation.
    unseen = state.queue_traded + volume
    cancelled = (gone - unseen).clamp(min=0.0)
    unseen = (unseen - gone).clamp(min=0.0)
    waiting = ahead.clamp(min=0.0)
    share = (cancelled / shown_before.clamp(min=1.0)).clamp(max=1.0)
    waiting = waiting - waiting * share
    waiting = torch.where(known, torch.minimum(waiting, shown), waiting)
    ahead = torch.where(ahead > 0.0, waiting, ahead)

    full = resting & (through | crossed | (ahead + config.order_size <= 0.0))
    state = state._replace(
        queue_ahead=torch.where(resting, ahead, state.queue_ahead),
        queue_traded=torch.where(resting, unseen, state.queue_traded),
        order_age=state.order_age + (side != 0),
    )
    units = torch.where(full, side, 0)
    value = price * config.order_size
    return cancel(book_trade(state, config, units, value, config.maker_fee_bp, step), full)

"""A batched limit-order-book simulator: b environments replay one chunk of the book, each from its own row.

Functional, of fixed shapes, without host synchronisation, so that a step can be captured as a graph. Every quantity
is defined in docs/market.md.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.data.book import SCALARS, VARIABLES, Book
from trainer.market.config import MarketConfig
from trainer.market.execution import Quote, book_trade, cancel, post, quote, rest, walk
from trainer.market.state import MarketState, StepResult

__all__ = ["ACTIONS", "Market", "MarketConfig", "MarketState", "StepResult"]

ACTIONS = ("hold", "market_buy", "market_sell", "join_bid", "join_ask", "flatten")
HOLD, MARKET_BUY, MARKET_SELL, JOIN_BID, JOIN_ASK, FLATTEN = range(len(ACTIONS))

_ACTION_BITS = 3


class Market:
    """The rules of the market. It holds no state of its own: every method is a function of its arguments."""

    OBSERVED = 8
    """Scalars of the agent's own that ``observe`` returns."""

    def __init__(self, config: MarketConfig) -> None:
        self.config = config

    def offsets(self, uniform: Tensor, rows: int, window: int) -> Tensor:
        """Start rows int64 [b] from ``uniform`` float32 [b] in [0, 1): a full window before, at least a step after.

        ValueError when ``rows`` are too few for one window and two steps.
        """
        first, last = window - 1, rows - 1 - 2 * self.config.rows_per_step
        if last < first:
            raise ValueError(f"a chunk of {rows} rows is too short for a window of {window} and two steps: raise it")
        span = last - first + 1
        return (uniform.double() * span).to(torch.int64).clamp(0, span - 1) + first

    def reset(self, book: Book, cursor: Tensor) -> MarketState:
        """Fresh accounts, flat and without money, at rows ``cursor`` int64 [b] of ``book``."""
        whole = torch.zeros_like(cursor)
        money = torch.zeros(cursor.shape, dtype=torch.float64, device=cursor.device)
        size = torch.zeros(cursor.shape, dtype=torch.float32, device=cursor.device)
        return MarketState(
            cursor=cursor.clamp(0, book.rows - 1),
            position_units=whole,
            entry_step=whole - 1,
            entry_px=money,
            entry_fees=money,
            cash=money,
            equity_peak=money,
            drawdown=money,
            realised=money,
            order_side=whole,
            order_px=money,
            queue_ahead=size,
            queue_traded=size,
            order_age=whole,
            pending_action=whole,
            trades=whole,
            wins=whole,
            fees=money,
        )

    def observe(self, book: Book, state: MarketState, window: int) -> tuple[Tensor, Tensor]:
        """(float32 [b, window, VARIABLES, SCALARS], float32 [b, OBSERVED]): the last ``window`` rows, the newest last,
        and the agent's own state. Rows before the chunk's first are its first again.
        """
        back = torch.arange(1 - window, 1, dtype=torch.int64, device=state.cursor.device)
        index = (state.cursor[:, None] + back).clamp(min=0)
        rows = book.features.index_select(0, index.reshape(-1)).reshape(-1, window, VARIABLES, SCALARS)
        return rows, self._own(quote(book, state.cursor), state)

    def step(self, book: Book, state: MarketState, action: Tensor, step: Tensor) -> StepResult:
        """Take ``action`` int64 [b] and let ``rows_per_step`` rows pass; ``step`` int64 [] is the step's number.

        An environment whose next step would pass the end of the chunk is closed, ``done``, and restarted.
        """
        config = self.config
        before = quote(book, state.cursor)
        equity_before = self._equity(state, before)
        position_before, drawdown_before = state.position_units, state.drawdown
        state, action = self._delay(state, action)
        now = before
        if config.effect_row == 0:
            state = self._act(state, now, action, step)
        for row in range(1, config.rows_per_step + 1):
            cursor = (state.cursor + 1).clamp(max=book.rows - 1)
            here = quote(book, cursor)
            trade_px, trade_sz = book.trade_px.index_select(0, cursor), book.trade_sz.index_select(0, cursor)
            state = rest(state._replace(cursor=cursor), config, now, here, trade_px, trade_sz, step)
            now = here
            if row == config.effect_row:
                state = self._act(state, now, action, step)
        done = state.cursor + config.rows_per_step > book.rows - 1
        state = self._close(state, now, done, step)
        equity = self._equity(state, now)
        peak = torch.maximum(state.equity_peak, equity)
        drawdown = torch.maximum(state.drawdown, peak - equity)
        filled = state.position_units - position_before
        state = state._replace(equity_peak=peak, drawdown=drawdown)
        reward = self._reward(equity - equity_before, drawdown - drawdown_before, state.position_units, before)
        restart = min(config.restart_row, max(book.rows - 1 - config.rows_per_step, 0))
        state = state._replace(
            cursor=torch.where(done, restart, state.cursor),
            pending_action=torch.where(done, 0, state.pending_action),
        )
        return StepResult(state, reward, done, equity - equity_before, equity, filled)

    def change_book(self, old: Book, state: MarketState, cursor: Tensor, step: Tensor) -> MarketState:
        """The accounts, closed on ``old`` as at its end, at rows ``cursor`` int64 [b] of the chunk that comes next."""
        now = quote(old, state.cursor)
        state = self._close(state, now, torch.ones_like(state.cursor, dtype=torch.bool), step)
        equity = self._equity(state, now)
        peak = torch.maximum(state.equity_peak, equity)
        return state._replace(
            cursor=cursor,
            pending_action=torch.zeros_like(state.pending_action),
            equity_peak=peak,
            drawdown=torch.maximum(state.drawdown, peak - equity),
        )

    def equity(self, book: Book, state: MarketState) -> Tensor:
        """Cash + position at the mid price, float64 [b], USD."""
        return self._equity(state, quote(book, state.cursor))

    def _equity(self, state: MarketState, at: Quote) -> Tensor:
        return state.cash + state.position_units.double() * at.mid * self.config.value_per_price

    def _delay(self, state: MarketState, action: Tensor) -> tuple[MarketState, Tensor]:
        """The action that takes effect in this step, and the pipeline with the new one in it."""
        steps = self.config.pipeline_steps
        if steps == 0:
            return state, action
        oldest = state.pending_action >> (_ACTION_BITS * (steps - 1))
        kept = state.pending_action & ((1 << (_ACTION_BITS * (steps - 1))) - 1)
        return state._replace(pending_action=(kept << _ACTION_BITS) | action), oldest

    def _act(self, state: MarketState, at: Quote, action: Tensor, step: Tensor) -> MarketState:
        """Execute ``action`` on the book of one row; nothing where the row is not valid."""
        config, held = self.config, state.position_units
        action = torch.where(at.valid, action, HOLD)
        may_buy, may_sell = held < config.max_pyramid_units, held > -config.max_pyramid_units
        state = cancel(state, (action == MARKET_BUY) | (action == MARKET_SELL) | (action == FLATTEN))

        one = torch.where((action == MARKET_BUY) & may_buy, 1, torch.where((action == MARKET_SELL) & may_sell, -1, 0))
        units = torch.where(action == FLATTEN, -held, one)
        size = units.abs().double() * config.order_size
        value, missing, _ = walk(at, units > 0, size)
        units = torch.where(missing > 0.0, 0, units)
        state = book_trade(state, config, units, value, config.taker_fee_bp, step)

        bid = (action == JOIN_BID) & may_buy
        ask = (action == JOIN_ASK) & may_sell
        side = torch.where(bid, 1, -1)
        price = torch.where(bid, at.bid_px[:, 0], at.ask_px[:, 0])
        ahead = torch.where(bid, at.bid_sz[:, 0], at.ask_sz[:, 0])
        # Joining where the order already rests keeps its place in the queue.
        there = (state.order_side == side) & (state.order_px == price)
        return post(state, (bid | ask) & ~there, side, price, ahead)

    def _close(self, state: MarketState, at: Quote, which: Tensor, step: Tensor) -> MarketState:
        """Cancel and flatten where ``which`` holds, whatever the book: what it has not trades at its worst price."""
        config = self.config
        units = torch.where(which, -state.position_units, 0)
        value, missing, worst = walk(at, units > 0, units.abs().double() * config.order_size)
        value = value + missing * worst
        return cancel(book_trade(state, config, units, value, config.taker_fee_bp, step), which)

    def _reward(self, pnl: Tensor, deeper: Tensor, position: Tensor, before: Quote) -> Tensor:
        config = self.config
        bp = 1e4 / self._notional(before)
        reward = pnl * bp - position.abs().double() * config.holding_penalty_bp - deeper * bp * config.drawdown_penalty
        return (reward * config.reward_scale).clamp(-config.reward_limit, config.reward_limit).float()

    def _notional(self, at: Quote) -> Tensor:
        """USD of one unit at the mid price, at least 1e-9: spreads of futures can have a mid of 0."""
        return (at.mid.abs() * self.config.value_per_price).clamp(min=1e-9)

    def _own(self, at: Quote, state: MarketState) -> Tensor:
        config = self.config
        held = state.position_units.double()
        bp = 1e4 / self._notional(at)
        gain = (at.mid - state.entry_px) * held * config.value_per_price
        side = state.order_side.double()
        best = torch.where(state.order_side > 0, at.bid_px[:, 0], at.ask_px[:, 0])
        away = torch.where(state.order_side != 0, (best - state.order_px) * side * config.value_per_price, 0.0)
        ahead = state.queue_ahead.double().clamp(min=0.0)
        age = state.order_age.double()
        fall = state.equity_peak - self._equity(state, at)
        own = (
            held * (1.0 / config.max_pyramid_units),
            _squash(gain * bp),
            side,
            _squash(away * bp),
            ahead / (ahead + config.order_size),
            age / (age + 64.0),
            _squash(fall * bp * 0.1),
            (state.pending_action != 0).double(),
        )
        return torch.stack(own, 1).float()


def _squash(x: Tensor) -> Tensor:
    """X / (1 + |x|): within -1..1, and exact to round on any machine, which tanh is not."""
    return x / (1.0 + x.abs())

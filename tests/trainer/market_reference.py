"""The market's rules once more, for one environment, in plain Python: slow, and written to be read."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.data.book import Book
from trainer.market.environment import ACTIONS, MarketConfig


class Rows:
    """A chunk as Python lists."""

    def __init__(self, book: Book) -> None:
        self.count = book.rows
        self.sides = {
            1: [list(zip(p, s, strict=True)) for p, s in zip(book.bid_px.tolist(), book.bid_sz.tolist(), strict=True)],
            -1: [list(zip(p, s, strict=True)) for p, s in zip(book.ask_px.tolist(), book.ask_sz.tolist(), strict=True)],
        }
        self.trades = list(zip(book.trade_px.tolist(), book.trade_sz.tolist(), strict=True))
        self.valid = book.valid.tolist()

    def mid(self, row: int) -> float:
        return (self.sides[1][row][0][0] + self.sides[-1][row][0][0]) / 2

    def shown(self, row: int, side: int, price: float) -> float | None:
        """Size at a price; None: not known."""
        levels = self.sides[side][row]
        if not self.valid[row] or (levels[-1][0] - price) * side > 0:
            return None
        return sum(size for level, size in levels if level == price)


@dataclass
class Order:
    side: int
    price: float
    ahead: float
    traded: float = 0.0
    age: int = 0


class Account:
    """One environment."""

    def __init__(self, rows: Rows, config: MarketConfig, cursor: int) -> None:
        self.rows, self.config, self.cursor = rows, config, cursor
        self.units, self.cash, self.fees, self.realised, self.peak, self.drawdown = 0, 0.0, 0.0, 0.0, 0.0, 0.0
        self.lots: float = 0.0  # average entry price
        self.lot_fees = 0.0
        self.entry_step, self.trades, self.wins = -1, 0, 0
        self.order: Order | None = None
        self.waiting: list[tuple[int, str]] = []  # rows to go, action

    def equity(self) -> float:
        return self.cash + self.units * self.rows.mid(self.cursor) * self.config.value_per_price

    def trade(self, units: int, value: float, fee_bp: float, step: int) -> None:
        config, sign = self.config, 1 if units > 0 else -1
        fee = abs(value) * config.multiplier * fee_bp / 1e4
        self.cash -= sign * value * config.multiplier + fee
        self.fees += fee
        price = value / (abs(units) * config.order_size)
        closed = min(abs(units), abs(self.units)) if self.units * units < 0 else 0
        if closed:
            held = 1 if self.units > 0 else -1
            entry_fee = self.lot_fees * closed / abs(self.units)
            net = (price - self.lots) * held * closed * config.value_per_price - fee * closed / abs(units) - entry_fee
            self.realised += net
            self.trades += 1
            self.wins += net > 0
            self.lot_fees -= entry_fee
        opened = abs(units) - closed
        before = abs(self.units) - closed
        self.units += units
        if opened:
            self.lots = (self.lots * before + price * opened) / (before + opened)
            self.lot_fees += fee * opened / abs(units)
            if before == 0:
                self.entry_step = step
        if self.units == 0:
            self.lots, self.lot_fees, self.entry_step = 0.0, 0.0, -1

    def market(self, units: int, step: int, *, force: bool = False) -> None:
        if not units:
            return
        left, value = abs(units) * self.config.order_size, 0.0
        levels = self.rows.sides[-1 if units > 0 else 1][self.cursor]
        for price, size in levels:
            taken = min(left, size)
            value += taken * price
            left -= taken
        if left > 0 and not force:
            return
        self.trade(units, value + left * levels[-1][0], self.config.taker_fee_bp, step)

    def act(self, action: str, step: int) -> None:
        if action == "hold" or not self.rows.valid[self.cursor]:
            return
        most = self.config.max_pyramid_units
        if action in ("market_buy", "market_sell", "flatten"):
            self.order = None
            units = {"market_buy": 1, "market_sell": -1, "flatten": -self.units}[action]
            if action == "flatten" or abs(self.units + units) <= most:
                self.market(units, step)
            return
        side = 1 if action == "join_bid" else -1
        if abs(self.units + side) > most:
            return
        price, size = self.rows.sides[side][self.cursor][0]
        if self.order is None or (self.order.side, self.order.price) != (side, price):
            self.order = Order(side, price, size)

    def rest(self, before: int, step: int) -> None:
        order, rows = self.order, self.rows
        if order is None:
            return
        order.age += 1
        if not rows.valid[self.cursor]:
            return
        price, size = rows.trades[self.cursor]
        hits = size * order.side < 0
        through = hits and (order.price - price) * order.side > 0
        crossed = (order.price - rows.sides[-order.side][self.cursor][0][0]) * order.side >= 0
        volume = abs(size) if hits and price == order.price else 0.0
        order.ahead -= volume
        old, new = (rows.shown(row, order.side, order.price) for row in (before, self.cursor))
        gone = max(old - new, 0.0) if old is not None and new is not None else 0.0
        order.traded += volume
        cancelled, order.traded = max(gone - order.traded, 0.0), max(order.traded - gone, 0.0)
        if order.ahead > 0:
            order.ahead -= order.ahead * min(cancelled / max(old or 0.0, 1.0), 1.0)
            if new is not None:
                order.ahead = min(order.ahead, new)
        if through or crossed or order.ahead + self.config.order_size <= 0:
            self.order = None
            self.trade(order.side, order.price * self.config.order_size, self.config.maker_fee_bp, step)

    def step(self, action: int, step: int) -> tuple[float, float, bool]:
        """(reward, change of equity, done)."""
        config = self.config
        equity, drawdown, notional = self.equity(), self.drawdown, self.rows.mid(self.cursor) * config.value_per_price
        self.waiting.append((config.latency_rows, ACTIONS[action]))
        for row in range(config.rows_per_step + 1):
            if row:
                self.cursor += 1
                self.rest(self.cursor - 1, step)
                self.waiting = [(rows - 1, name) for rows, name in self.waiting]
            if self.waiting and self.waiting[0][0] == 0:
                self.act(self.waiting.pop(0)[1], step)
        done = self.cursor + config.rows_per_step > self.rows.count - 1
        if done:
            self.order, self.waiting = None, []
            self.market(-self.units, step, force=True)
        now = self.equity()
        self.peak = max(self.peak, now)
        self.drawdown = max(self.drawdown, self.peak - now)
        bp = 1e4 / notional
        reward = (now - equity) * bp - abs(self.units) * config.holding_penalty_bp
        reward -= (self.drawdown - drawdown) * bp * config.drawdown_penalty
        if done:
            self.cursor = config.restart_row
        return max(-config.reward_limit, min(config.reward_limit, reward * config.reward_scale)), now - equity, done

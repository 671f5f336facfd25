"""Scenarios on books of a few rows, with every number worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from tests.trainer.market_books import book
from trainer.data.book import Book
from trainer.market.environment import ACTIONS, Market, MarketConfig, StepResult

HOLD, BUY, SELL, BID, ASK, FLAT = range(6)
TIGHT = ([(99.75, 5.0), (99.50, 8.0)], [(100.00, 4.0), (100.25, 6.0)])
UP = ([(101.00, 5.0), (100.75, 8.0)], [(101.25, 4.0), (101.50, 6.0)])
EMPTY: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])


def config(**given: float) -> MarketConfig:
    """No fees, no latency and no penalties unless given."""
    free = {"taker_fee_bp": 0.0, "maker_fee_bp": 0.0, "latency_rows": 0, "holding_penalty_bp": 0.0}
    return MarketConfig(**{**free, "drawdown_penalty": 0.0, **given})  # type: ignore[arg-type]


def play(chunk: Book, actions: Sequence[int], settings: MarketConfig, start: int = 0) -> list[StepResult]:
    """One environment from row ``start``; the result of each step."""
    market = Market(settings)
    state = market.reset(chunk, torch.tensor([start]))
    results = []
    for number, action in enumerate(actions):
        results.append(market.step(chunk, state, torch.tensor([action]), torch.tensor(number)))
        state = results[-1].state
    return results


def values(results: Sequence[StepResult], name: str) -> list[float]:
    return [getattr(result.state, name).item() for result in results]


def test_the_actions_are_these() -> None:
    assert ACTIONS == ("hold", "market_buy", "market_sell", "join_bid", "join_ask", "flatten")


def test_buy_and_sell_at_known_prices() -> None:
    # Buy 2 at 100.00, sell 2 at 101.00, 50 USD a point: 100 USD, less 1 bp of 10,000 and of 10,100 USD.
    chunk = book([TIGHT, UP, UP, UP, UP])
    results = play(chunk, [BUY, SELL], config(order_size=2, multiplier=50, taker_fee_bp=1))
    assert values(results, "cash") == [-10_001.0, pytest.approx(97.99, abs=1e-9)]
    assert values(results, "position_units") == [1, 0]
    assert values(results, "entry_px") == [100.0, 0.0]
    assert values(results, "entry_step") == [0, -1]
    assert [r.filled.item() for r in results] == [1, -1]
    assert values(results, "fees") == [1.0, pytest.approx(2.01, abs=1e-12)]
    assert values(results, "trades") == [0, 1]
    assert values(results, "wins") == [0, 1]
    assert values(results, "realised")[1] == pytest.approx(97.99, abs=1e-9)
    # Marked at the mid price of the row that the step ends on: 101.125.
    assert results[0].equity.item() == -10_001.0 + 101.125 * 100
    assert results[0].pnl.item() == results[0].equity.item()
    assert results[1].pnl.item() == pytest.approx(97.99 - results[0].equity.item(), abs=1e-9)


def test_a_fee_can_turn_a_gain_into_a_loss() -> None:
    chunk = book([TIGHT, ([(100.01, 5.0)], [(100.02, 5.0)]), UP, UP, UP])
    results = play(chunk, [BUY, SELL], config(taker_fee_bp=1))
    assert (values(results, "trades")[-1], values(results, "wins")[-1]) == (1, 0)
    assert values(results, "realised")[-1] == pytest.approx(0.01 - 0.01 - 0.010001, abs=1e-9)


def test_a_large_order_walks_the_levels() -> None:
    # 4 at 100.00 and 3 at 100.25; back 5 at 99.75 and 2 at 99.50.
    results = play(book([TIGHT] * 5), [BUY, SELL], config(order_size=7))
    assert values(results, "cash") == [-(400 + 300.75), -(400 + 300.75) + 498.75 + 199]
    assert values(results, "entry_px")[0] == 700.75 / 7


def test_an_order_larger_than_ten_levels_is_not_executed() -> None:
    results = play(book([TIGHT] * 5), [BUY, SELL], config(order_size=10.5))
    assert values(results, "position_units") == [0, -1]
    assert values(results, "cash") == [0, 5 * 99.75 + 5.5 * 99.5]


def test_short_first_and_turn() -> None:
    chunk = book([TIGHT] * 8)
    results = play(chunk, [SELL, SELL, BUY, BUY, BUY], config())
    assert values(results, "position_units") == [-1, -2, -1, 0, 1]
    assert values(results, "cash") == [99.75, 199.5, 99.5, -0.5, -100.5]
    assert values(results, "entry_px") == [99.75, 99.75, 99.75, 0, 100]
    assert values(results, "entry_step") == [0, 0, 0, -1, 4]
    assert values(results, "trades") == [0, 0, 1, 2, 2]
    assert values(results, "realised") == [0, 0, -0.25, -0.5, -0.5]


def test_pyramiding_averages_the_entry_and_stops_at_the_limit() -> None:
    chunk = book([TIGHT, UP, UP, UP, UP, UP])
    results = play(chunk, [BUY, BUY, BUY, BUY], config(max_pyramid_units=3))
    assert values(results, "position_units") == [1, 2, 3, 3]
    assert values(results, "entry_px") == [100, 100.625, pytest.approx(302.5 / 3), pytest.approx(302.5 / 3)]
    assert values(results, "entry_step") == [0, 0, 0, 0]
    assert values(results, "cash")[2:] == [-302.5, -302.5]
    results = play(chunk, [SELL, SELL, SELL, ASK], config(max_pyramid_units=2))
    assert values(results, "position_units") == [-1, -2, -2, -2]
    assert values(results, "order_side") == [0, 0, 0, 0]


def test_flatten_closes_everything_and_cancels() -> None:
    results = play(book([TIGHT] * 8), [BUY, BUY, BID, FLAT, FLAT], config())
    assert values(results, "position_units") == [1, 2, 2, 0, 0]
    assert values(results, "order_side") == [0, 0, 1, 0, 0]
    assert results[3].filled.item() == -2
    assert values(results, "cash")[3:] == [-0.5, -0.5]
    assert values(results, "trades")[-1] == 1


def test_rows_that_are_not_valid_execute_nothing() -> None:
    crossed = ([(101.0, 5.0)], [(100.0, 4.0)])
    chunk = book([TIGHT, EMPTY, crossed, TIGHT, TIGHT, TIGHT], {2: (90.0, -100.0)})
    for action in (BUY, SELL, BID, ASK):
        results = play(chunk, [action, action], config(), start=1)
        assert values(results, "position_units") == [0, 0]
        assert values(results, "order_side") == [0, 0]
    held = play(chunk, [BUY, FLAT, FLAT, FLAT], config())
    assert values(held, "position_units") == [1, 1, 1, 0]
    # A resting order neither fills nor loses its place on such a row.
    resting = play(chunk, [BID, HOLD], config())
    assert values(resting, "queue_ahead") == [5, 5]
    assert values(resting, "order_side") == [1, 1]


@pytest.mark.parametrize(
    ("latency", "rows_per_step", "entry"),
    [
        (0, 1, 100.0),
        (1, 1, 101.0),
        (2, 1, 102.0),
        (3, 1, 103.0),
        (1, 2, 101.0),
        (2, 2, 102.0),
        (3, 2, 103.0),
        (5, 2, 105.0),
    ],
)
def test_a_decision_meets_the_book_that_many_rows_later(latency: int, rows_per_step: int, entry: float) -> None:
    chunk = book([([(99.5 + row, 5.0)], [(100.0 + row, 5.0)]) for row in range(20)])
    results = play(chunk, [BUY] + [HOLD] * 5, config(latency_rows=latency, rows_per_step=rows_per_step))
    assert values(results, "entry_px")[-1] == entry
    opened = max(latency - 1, 0) // rows_per_step
    assert values(results, "position_units") == [0] * opened + [1] * (6 - opened)
    assert values(results, "cursor") == [rows_per_step * (step + 1) for step in range(6)]


def test_actions_on_their_way_keep_their_order() -> None:
    chunk = book([TIGHT] * 20)
    results = play(chunk, [BUY, BUY, FLAT, SELL, HOLD, HOLD, HOLD, HOLD], config(latency_rows=4))
    assert values(results, "position_units") == [0, 0, 0, 1, 2, 0, -1, -1]


def test_a_passive_order_waits_for_the_queue_and_then_for_its_own_size() -> None:
    # Queue of 5 at 99.75. Sells at that price: 3, then 2 (the queue is gone, our 2 are not), then 1, then 1.
    chunk = book(
        [([(99.75, size)], [(100.0, 4.0)]) for size in (5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0)],
        {1: (99.75, -3.0), 2: (99.75, -2.0), 3: (99.75, -1.0), 4: (99.75, -1.0)},
    )
    results = play(chunk, [BID, HOLD, HOLD, HOLD], config(order_size=2, maker_fee_bp=2))
    assert values(results, "queue_ahead") == [2, 0, -1, 0]
    assert values(results, "order_age") == [1, 2, 3, 0]
    assert values(results, "order_side") == [1, 1, 1, 0]
    assert values(results, "position_units") == [0, 0, 0, 1]
    assert values(results, "cash")[-1] == pytest.approx(-199.5 - 199.5 * 2e-4, abs=1e-12)
    assert [r.filled.item() for r in results] == [0, 0, 0, 1]


def test_trades_of_the_other_side_or_at_other_prices_do_not_move_the_queue() -> None:
    chunk = book([TIGHT] * 5, {1: (99.75, 4.0), 2: (100.0, -4.0), 3: (100.0, 4.0)})
    results = play(chunk, [BID, HOLD, HOLD], config())
    assert values(results, "queue_ahead") == [5, 5, 5]


@pytest.mark.parametrize(
    ("action", "trade", "row"),
    [
        (BID, (99.50, -1.0), TIGHT),  # sold below our bid
        (ASK, (100.25, 1.0), TIGHT),  # bought above our ask
        (BID, (0.0, 0.0), ([(99.0, 1.0)], [(99.75, 1.0)])),  # the ask has come down to our bid
        (ASK, (0.0, 0.0), ([(100.0, 1.0)], [(100.5, 1.0)])),  # the bid has come up to our ask
    ],
)
def test_a_passive_order_is_filled_when_traded_through(action: int, trade: tuple[float, float], row: object) -> None:
    chunk = book([TIGHT, row, TIGHT, TIGHT], {1: trade})  # type: ignore[list-item]
    result = play(chunk, [action], config())[0]
    side = 1 if action == BID else -1
    assert result.state.position_units.item() == side
    assert result.state.cash.item() == (-99.75 if action == BID else 100.0)
    assert result.state.order_side.item() == 0


def test_cancellations_move_the_queue_pro_rata_and_never_fill() -> None:
    # Joined behind 8; 4 join behind us; half of the 12 cancel: 8 -> 4 ahead. Then 5 of 6 cancel, then all.
    chunk = book([([(99.75, size)], [(100.0, 4.0)]) for size in (8.0, 12.0, 6.0, 1.0, 1.0, 1.0)])
    results = play(chunk, [BID, HOLD, HOLD], config())
    assert values(results, "queue_ahead") == [8, 4, pytest.approx(4 / 6)]
    gone = book([([(99.75, 8.0)], [(100.0, 4.0)]), ([(99.5, 8.0)], [(100.0, 4.0)])] + [TIGHT] * 3)
    results = play(gone, [BID, HOLD], config())
    assert values(results, "queue_ahead") == [0, 0]
    assert values(results, "position_units") == [0, 0]


def test_size_that_trades_took_is_not_counted_again_as_cancelled() -> None:
    sides = [([(99.75, size)], [(100.0, 4.0)]) for size in (10.0, 10.0, 6.0, 6.0, 6.0)]
    later = play(book(sides, {1: (99.75, -4.0)}), [BID, HOLD], config())  # the trade's row, then the smaller size
    assert values(later, "queue_ahead") == [6, 6]
    assert values(later, "queue_traded") == [4, 0]
    at_once = play(book([sides[0], *sides[2:]], {1: (99.75, -4.0)}), [BID, HOLD], config())
    assert values(at_once, "queue_ahead") == [6, 6]
    assert values(at_once, "queue_traded") == [0, 0]


def test_joining_again_keeps_the_place_and_a_new_price_loses_it() -> None:
    better = ([(99.80, 3.0), (99.75, 9.0)], [(100.0, 4.0)])
    chunk = book([TIGHT, TIGHT, TIGHT, better, better, better], {1: (99.75, -2.0)})
    results = play(chunk, [BID, BID, HOLD, BID], config())
    assert values(results, "queue_ahead") == [3, 3, 3, 3]
    assert values(results, "order_px") == [99.75, 99.75, 99.75, 99.80]
    assert values(results, "order_age") == [1, 2, 3, 1]
    assert values(play(chunk, [BID, ASK], config()), "order_side") == [1, -1]


def test_an_order_deeper_than_ten_levels_keeps_its_queue() -> None:
    near = [(99.75 - 0.25 * level, 5.0) for level in range(10)]
    far = [(103.75 - 0.25 * level, 5.0) for level in range(10)]
    chunk = book([(near, [(104.0, 4.0)]), (far, [(104.0, 4.0)]), (near, [(104.0, 4.0)]), (near, [(104.0, 4.0)]), TIGHT])
    assert values(play(chunk, [BID, HOLD, HOLD], config()), "queue_ahead") == [5, 5, 5]


def test_a_queue_out_of_sight_is_never_longer_than_what_is_displayed_later() -> None:
    far = [(103.75 - 0.25 * level, 5.0) for level in range(10)]
    shorter = ([(99.75, 2.0)], [(104.0, 4.0)])
    chunk = book([TIGHT, (far, [(104.0, 4.0)]), shorter, shorter, shorter])
    assert values(play(chunk, [BID, HOLD], config()), "queue_ahead") == [5, 2]


def test_market_orders_cancel_the_resting_order() -> None:
    results = play(book([TIGHT] * 6), [BID, SELL, BID, BUY], config())
    assert values(results, "order_side") == [1, 0, 1, 0]
    assert values(results, "order_px") == [99.75, 0, 99.75, 0]


def test_a_passive_order_cannot_pass_the_limit() -> None:
    results = play(book([TIGHT] * 6), [BUY, BID, ASK], config(max_pyramid_units=1))
    assert values(results, "order_side") == [0, 0, -1]

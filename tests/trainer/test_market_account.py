from __future__ import annotations

import pytest
import torch

from tests.trainer.market_books import book
from tests.trainer.test_market_orders import BID, BUY, FLAT, HOLD, SELL, TIGHT, config, play, values
from trainer.market.environment import Market, MarketConfig


def at(mid: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return [(mid - 0.5, 10.0)], [(mid + 0.5, 10.0)]


def test_drawdown_is_the_largest_fall_from_the_peak() -> None:
    # Bought at 100.5 with the mid at 100; mids 104, 101, 103, 98, 120: equity 3.5, 0.5, 2.5, -2.5, 19.5.
    chunk = book([at(mid) for mid in (100, 104, 101, 103, 98, 120, 120, 120)])
    results = play(chunk, [BUY, HOLD, HOLD, HOLD, HOLD], config(multiplier=10))
    assert [r.equity.item() for r in results] == [35, 5, 25, -25, 195]
    assert values(results, "equity_peak") == [35, 35, 35, 35, 195]
    assert values(results, "drawdown") == [0, 30, 30, 60, 60]
    assert [r.pnl.item() for r in results] == [35, -30, 20, -50, 220]


def test_the_peak_starts_at_zero() -> None:
    results = play(book([at(100), at(99), at(99), at(99)]), [BUY], config())
    assert values(results, "drawdown") == [1.5]


def test_reward_by_hand() -> None:
    # Equity falls by 1.5 of 100: 150 bp, all of it new drawdown.
    chunk = book([at(100), at(99), at(99), at(99)])
    given = {"reward_limit": 1000.0, "holding_penalty_bp": 2.0, "drawdown_penalty": 0.1}
    reward = play(chunk, [BUY], config(**given))[0].reward
    assert reward.dtype == torch.float32
    assert reward.item() == pytest.approx(-150 - 2 - 15)
    assert play(chunk, [BUY], config(**{**given, "reward_scale": 0.5}))[0].reward.item() == pytest.approx(-83.5)
    assert play(chunk, [BUY], config(**{**given, "reward_limit": 10.0}))[0].reward.item() == -10
    assert play(chunk, [SELL], config(reward_limit=1000.0))[0].reward.item() == pytest.approx(50)
    # The multiplier is money alone: basis points do not change.
    assert play(chunk, [BUY], config(**given, multiplier=50.0))[0].reward.item() == pytest.approx(-167)


def test_the_end_of_the_chunk_closes_and_restarts() -> None:
    chunk = book([at(100), at(101), at(102), at(103), at(104)])
    results = play(chunk, [BUY, BID, HOLD, HOLD, HOLD], config(restart_row=1))
    assert [r.done.item() for r in results] == [False, False, False, True, False]
    assert values(results, "cursor") == [1, 2, 3, 1, 2]
    assert values(results, "position_units") == [1, 1, 1, 0, 0]
    assert values(results, "order_side") == [0, 1, 1, 0, 0]
    # Bought at 100.5 and closed at the last row's bid, 103.5. The account goes on.
    assert values(results, "cash")[3:] == [3, 3]
    assert values(results, "entry_step")[3:] == [-1, -1]
    assert results[4].pnl.item() == 0
    assert results[3].filled.item() == -1


def test_closing_at_the_end_works_whatever_the_book() -> None:
    thin = ([(99.0, 1.0), (98.0, 1.0)], [(101.0, 1.0)])
    results = play(book([at(100), at(100), thin]), [BUY, HOLD], config(order_size=5))
    assert values(results, "position_units") == [1, 0]
    assert values(results, "cash")[1] == -502.5 + 99 + 98 + 3 * 98
    nothing: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    results = play(book([at(100), at(100), nothing]), [BUY, HOLD], config())
    assert values(results, "position_units") == [1, 0]
    assert values(results, "cash")[1] == -1.0


def test_an_action_on_its_way_is_forgotten_at_the_end() -> None:
    results = play(book([at(100)] * 5), [HOLD, HOLD, HOLD, BUY, HOLD, HOLD, HOLD], config(latency_rows=3), start=0)
    assert values(results, "pending_action")[2:4] == [0, 0]
    assert values(results, "position_units") == [0] * 7


def test_the_next_chunk_takes_over_a_closed_account() -> None:
    market = Market(config(multiplier=10))
    old, new = book([at(100), at(103), at(103), at(103)]), book([at(50)] * 5)
    state = market.step(old, market.reset(old, torch.tensor([0])), torch.tensor([BUY]), torch.tensor(0)).state
    moved = market.change_book(old, state, torch.tensor([3]), torch.tensor(1))
    assert (moved.cursor.item(), moved.position_units.item(), moved.cash.item()) == (3, 0, 20)
    assert (moved.equity_peak.item(), moved.drawdown.item()) == (25, 5)
    assert (moved.trades.item(), moved.wins.item(), moved.realised.item()) == (1, 1, 20)
    assert market.equity(new, moved).item() == 20


def test_the_observation_is_the_window_that_ends_at_the_cursor() -> None:
    market = Market(config())
    chunk = book([TIGHT] * 8)
    rows, own = market.observe(chunk, market.reset(chunk, torch.tensor([5, 1])), 3)
    assert (rows.shape, rows.dtype) == ((2, 3, 12, 4), torch.float32)
    assert rows[:, :, 0, 0].tolist() == [[3, 4, 5], [0, 0, 1]]
    assert (own.shape, own.dtype) == ((2, Market.OBSERVED), torch.float32)
    assert own.tolist() == [[0] * 8] * 2


def test_what_the_agent_sees_of_itself() -> None:
    market = Market(config(latency_rows=2, max_pyramid_units=4, order_size=2))
    chunk = book([at(100)] * 9)
    state = market.reset(chunk, torch.tensor([0]))
    for number, action in enumerate((BUY, BID, SELL)):
        state = market.step(chunk, state, torch.tensor([action]), torch.tensor(number)).state
    own = market.observe(chunk, state, 2)[1][0].tolist()
    # One unit bought at 100.5, mid 100: -50 bp. A bid just posted behind 10; equity 1 below its peak: 50 bp of 200.
    assert own[0] == 0.25
    assert own[1] == pytest.approx(-50 / 51)
    assert own[2:6] == [1, 0, pytest.approx(10 / 12), 0]
    assert own[6] == pytest.approx(5 / 6)
    assert own[7] == 1


def test_start_rows_leave_room_for_the_window_and_two_steps() -> None:
    market = Market(config(rows_per_step=3))
    uniform = torch.tensor([0.0, 0.5, 1 - 2**-24], dtype=torch.float32)
    assert market.offsets(uniform, 100, 32).tolist() == [31, 31 + 31, 93]
    assert market.offsets(uniform, 38, 32).tolist() == [31, 31, 31]
    with pytest.raises(ValueError, match="a chunk of 37 rows is too short for a window of 32 and two steps: raise it"):
        market.offsets(uniform, 37, 32)
    chunk = book([at(100)] * 100)
    state = market.reset(chunk, market.offsets(uniform, 100, 32))
    for number in range(2):
        result = market.step(chunk, state, torch.tensor([FLAT] * 3), torch.tensor(number))
        assert result.done.tolist() == [False, False, number == 1]
        state = result.state


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("order_size", 0.0, "order_size=0.0 must be above 0"),
        ("multiplier", float("nan"), "multiplier=nan is not a finite number: give one"),
        ("max_pyramid_units", 0, "max_pyramid_units=0 must be at least 1"),
        ("latency_rows", -1, "latency_rows=-1 must be at least 0"),
        ("latency_rows", 22, "latency_rows=22 is more than 21 rows, 21 steps: lower it"),
        ("taker_fee_bp", -0.1, "taker_fee_bp=-0.1 must be at least 0"),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, value: float, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        MarketConfig(**{name: value})  # type: ignore[arg-type]
    assert str(caught.value) == message

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.trainer.market_books import BTC, needs_data
from tests.trainer.market_reference import Account, Rows
from trainer.data.book import Book, BookStream
from trainer.market.environment import Market, MarketConfig, StepResult

SYNTHETIC = MarketConfig(order_size=3, multiplier=50, restart_row=31, taker_fee_bp=0.2, maker_fee_bp=-0.05)
REAL = MarketConfig(order_size=20, multiplier=0.001, restart_row=31, taker_fee_bp=0.4)


@pytest.fixture(scope="module")
def synthetic() -> Book:
    return BookStream("synthetic", chunk_rows=700, device="cpu", min_rows=700, rows=1500, seed=11).load(0)


def spoiled(book: Book) -> Book:
    """The book with invalid stretches, one of them at its end."""
    valid = book.valid.clone()
    valid[40:60], valid[300], valid[-3:] = False, False, False
    return replace(book, valid=valid)


def simulate(book: Book, config: MarketConfig, starts: Tensor, actions: Tensor) -> Iterator[StepResult]:
    """All steps of ``actions`` [steps, b]."""
    market = Market(config)
    state = market.reset(book, starts)
    for number in range(len(actions)):
        result = market.step(book, state, actions[number], torch.tensor(number))
        state = result.state
        yield result


def draws(steps: int, envs: int, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """(start rows, actions); passive orders are as frequent as the rest together, so that queues are met."""
    generator = torch.Generator().manual_seed(seed)
    choice = torch.tensor([0, 0, 0, 1, 2, 3, 3, 4, 4, 5])
    return (
        torch.randint(31, rows - 10, (envs,), generator=generator),
        choice[torch.randint(0, len(choice), (steps, envs), generator=generator)],
    )


def compare_with_reference(book: Book, config: MarketConfig, envs: int, steps: int, seed: int) -> Tensor:
    """Check every step of every environment; the number of closed trades of each."""
    starts, actions = draws(steps, envs, book.rows, seed)
    rows = Rows(book)
    accounts = [Account(rows, config, start) for start in starts.tolist()]
    for number, result in enumerate(simulate(book, config, starts, actions)):
        state = {name: column.tolist() for name, column in result.state._asdict().items()}
        rewards, pnl, done, equity = (getattr(result, n).tolist() for n in ("reward", "pnl", "done", "equity"))
        for env, account in enumerate(accounts):
            reward, change, ended = account.step(int(actions[number, env]), number)
            where = (number, env)
            assert (account.cursor, account.units, account.entry_step, account.trades, account.wins, ended) == (
                *(state[n][env] for n in ("cursor", "position_units", "entry_step", "trades", "wins")),
                done[env],
            ), where
            order = account.order
            assert state["order_side"][env] == (order.side if order else 0), where
            if order:
                assert (state["order_px"][env], state["order_age"][env]) == (order.price, order.age), where
                assert state["queue_ahead"][env] == pytest.approx(order.ahead, rel=1e-5, abs=1e-3), where
            money = {n: state[n][env] for n in ("cash", "fees", "realised", "drawdown", "entry_px", "entry_fees")}
            expected = (account.cash, account.fees, account.realised, account.drawdown, account.lots, account.lot_fees)
            assert list(money.values()) == pytest.approx(list(expected), rel=1e-9, abs=1e-6), where
            assert pnl[env] == pytest.approx(change, abs=1e-6), where
            assert rewards[env] == pytest.approx(reward, rel=1e-5, abs=1e-5), where
            if not ended:
                assert equity[env] == pytest.approx(account.equity(), abs=1e-6), where
    return result.state.trades


@pytest.mark.parametrize(
    "change",
    [{}, {"latency_rows": 0}, {"latency_rows": 5, "rows_per_step": 2}, {"rows_per_step": 3}, {"order_size": 40.0}],
    ids=lambda change: ",".join(f"{k}={v}" for k, v in change.items()) or "defaults",
)
def test_it_agrees_with_a_plain_simulator(synthetic: Book, change: dict[str, float]) -> None:
    config = replace(SYNTHETIC, **change)  # type: ignore[arg-type]
    trades = compare_with_reference(spoiled(synthetic), config, envs=8, steps=150, seed=1)
    assert int(trades.min()) > 3


@needs_data
def test_it_agrees_with_a_plain_simulator_on_a_real_book() -> None:
    book = BookStream(BTC, chunk_rows=3000, device="cpu", min_rows=3000).load(2)
    trades = compare_with_reference(book, REAL, envs=8, steps=200, seed=2)
    assert int(trades.min()) > 3


def test_money_is_conserved(synthetic: Book) -> None:
    config = replace(SYNTHETIC, latency_rows=2)
    market = Market(config)
    starts, actions = draws(200, 64, synthetic.rows, 3)
    total = torch.zeros(64, dtype=torch.float64)
    position = torch.zeros(64, dtype=torch.int64)
    for result in simulate(synthetic, config, starts, actions):
        state = result.state
        total, position = total + result.pnl, position + result.filled
        value = config.value_per_price
        mid = (result.equity - state.cash) / torch.where(position == 0, 1, position * value)
        open_gain = (mid - state.entry_px) * position * value
        assert torch.equal(position, state.position_units)
        assert torch.allclose(total, result.equity, rtol=0, atol=1e-5)
        assert torch.allclose(state.realised + open_gain - state.entry_fees, result.equity, rtol=0, atol=1e-5)
        flat = position == 0
        assert torch.equal(result.equity[flat], state.cash[flat])
        assert bool((state.equity_peak >= result.equity).all())
        assert bool((state.position_units.abs() <= config.max_pyramid_units).all())
        assert bool((state.wins <= state.trades).all())
        assert bool((state.queue_ahead > -config.order_size).all())
        assert all(bool(column.isfinite().all()) for column in (*state, result.reward))
        own = market.observe(synthetic, state, 4)[1]
        assert bool(own.isfinite().all())
        assert float(own.abs().max()) <= 1
    assert int(state.trades.sum()) > 700
    assert bool(result.reward.ne(0).any())


def test_an_environment_alone_has_the_same_bits(synthetic: Book) -> None:
    starts, actions = draws(60, 8, synthetic.rows, 4)
    together = list(simulate(synthetic, SYNTHETIC, starts, actions))
    market = Market(SYNTHETIC)
    for env in (0, 3, 7):
        alone = simulate(synthetic, SYNTHETIC, starts[env : env + 1], actions[:, env : env + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            for mine, theirs in zip((*one.state, *one[1:]), (*all_of_them.state, *all_of_them[1:]), strict=True):
                assert mine.numpy().tobytes() == theirs[env : env + 1].numpy().tobytes()
        seen = market.observe(synthetic, one.state, 16), market.observe(synthetic, all_of_them.state, 16)
        for mine, theirs in zip(*seen, strict=True):
            assert torch.equal(mine, theirs[env : env + 1])


@pytest.mark.parametrize("config", [SYNTHETIC, replace(SYNTHETIC, latency_rows=7, rows_per_step=2)])
def test_no_shape_depends_on_data_and_nothing_is_read_back(synthetic: Book, config: MarketConfig) -> None:
    market = Market(config)
    real = market.reset(synthetic, torch.full((5,), 40))
    with FakeTensorMode() as mode:
        # A fake tensor has no values: reading one, or a size that hangs on one, raises.
        book = Book(**{
            f.name: mode.from_tensor(v) if isinstance(v := getattr(synthetic, f.name), Tensor) else v
            for f in fields(Book)
        })  # fmt: skip
        start = market.offsets(torch.rand(5), book.rows, 32)
        state = market.reset(book, start)
        market.observe(book, state, 32)
        result = market.step(book, state, torch.zeros(5, dtype=torch.int64), torch.tensor(0))
        moved = market.change_book(book, result.state, start, torch.tensor(1))
    shape_and_type = [(tuple(column.shape), column.dtype) for column in real]
    for after in (result.state, moved):
        assert [(tuple(column.shape), column.dtype) for column in after] == shape_and_type


def test_a_step_leaves_its_arguments_as_they_were(synthetic: Book) -> None:
    market = Market(SYNTHETIC)
    state = market.reset(synthetic, torch.full((6,), 40))
    action, before = torch.arange(6), [column.clone() for column in state]
    market.step(synthetic, state, action, torch.tensor(0))
    assert all(torch.equal(column, old) for column, old in zip(state, before, strict=True))
    assert action.tolist() == [0, 1, 2, 3, 4, 5]

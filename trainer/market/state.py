"""What an environment remembers from one step to the next, and what a step returns."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class MarketState(NamedTuple):
    """State of b environments; every tensor is [b]. Money in USD, prices in currency units, sizes as the venue's."""

    cursor: Tensor
    """int64: row of the chunk that the environment stands on."""
    position_units: Tensor
    """int64: units held, negative when short."""
    entry_step: Tensor
    """int64: step at which the position was opened from flat (or turned); -1 when flat."""
    entry_px: Tensor
    """float64: average price of the units held; 0 when flat."""
    entry_fees: Tensor
    """float64: fees paid for the units held."""
    cash: Tensor
    """float64: all money received less all money paid, from 0 at reset."""
    equity_peak: Tensor
    """float64: highest equity at the end of a step, at least 0."""
    drawdown: Tensor
    """float64: largest fall of the equity below its peak so far."""
    realised: Tensor
    """float64: gains of closed units, net of the fees of opening and closing them; equals cash when flat."""
    order_side: Tensor
    """int64: resting order: +1 buys, -1 sells, 0 none."""
    order_px: Tensor
    """float64: its price; 0 without one."""
    queue_ahead: Tensor
    """float32: size that must trade before the order's turn; below 0: part of the order itself has traded."""
    queue_traded: Tensor
    """float32: size traded at its price that the displayed size does not show as gone yet."""
    order_age: Tensor
    """int64: rows since it was posted."""
    pending_action: Tensor
    """int64: actions on their way, 3 bits each, the newest lowest."""
    trades: Tensor
    """int64: executions that closed at least a unit."""
    wins: Tensor
    """int64: those of them whose realised gain, net of fees, was above 0."""
    fees: Tensor
    """float64: all fees paid."""


class StepResult(NamedTuple):
    """What one step did; every tensor is [b]."""

    state: MarketState
    reward: Tensor
    """float32, docs/market.md."""
    done: Tensor
    """bool: the chunk ended in this step; position and order were closed and the cursor restarted."""
    pnl: Tensor
    """float64: change of equity over the step, USD."""
    equity: Tensor
    """float64: cash + position at the mid price, at the end of the step, USD."""
    filled: Tensor
    """int64: units bought less units sold in the step."""

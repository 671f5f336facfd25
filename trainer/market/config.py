"""MarketConfig: every parameter of the simulated market with meaning, unit, default and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class MarketConfig:
    """Parameters of the market. ValueError names the one that is out of range.

    The defaults fit a liquid future with prices of thousands and sizes in lots.
    """

    order_size: float = 1.0
    """Size of one unit of position, in the venue's size units. Every order is for one unit."""
    multiplier: float = 1.0
    """USD per price unit and size unit: 50 for a contract worth 50 USD a point, 0.001 where sizes are in 1/1000."""
    max_pyramid_units: int = 4
    """Most units long or short. A buy at +max and a sell at -max do nothing."""
    taker_fee_bp: float = 0.5
    """Fee of market orders, basis points of the traded value."""
    maker_fee_bp: float = 0.1
    """Fee of passive fills, basis points of the traded value; negative: a rebate."""
    rows_per_step: int = 1
    """Rows of the book that pass in one step."""
    latency_rows: int = 1
    """Rows between the row that a decision saw and the row that it meets. 0: it trades on what it saw."""
    restart_row: int = 0
    """Row of the chunk at which an environment begins again after its end; window - 1 gives it a full window."""
    reward_scale: float = 1.0
    """Factor on the whole reward."""
    reward_limit: float = 10.0
    """The scaled reward is cut to +-this: one freak print must not decide a gradient."""
    holding_penalty_bp: float = 0.001
    """Taken from the reward each step for each unit held, basis points: holding must be worth something."""
    drawdown_penalty: float = 0.1
    """Taken from the reward for each basis point by which the largest drawdown so far has grown in the step."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value):
                raise ValueError(f"{field.name}={value} is not a finite number: give one")
        for name in ("order_size", "multiplier", "reward_limit"):
            self._at_least(name, 0.0, above=True)
        for name in ("max_pyramid_units", "rows_per_step"):
            self._at_least(name, 1)
        for name in ("latency_rows", "restart_row", "holding_penalty_bp", "drawdown_penalty", "taker_fee_bp"):
            self._at_least(name, 0)
        if self.pipeline_steps > LONGEST_PIPELINE:
            most = LONGEST_PIPELINE * self.rows_per_step + self.rows_per_step
            raise ValueError(
                f"latency_rows={self.latency_rows} is more than {most} rows, {LONGEST_PIPELINE + 1} steps: lower it"
            )

    def _at_least(self, name: str, low: float, *, above: bool = False) -> None:
        value = getattr(self, name)
        if value < low or (above and value == low):
            raise ValueError(f"{name}={value} must be {'above' if above else 'at least'} {low:g}")

    @property
    def pipeline_steps(self) -> int:
        """Steps that a decision waits before the step in which it takes effect."""
        return max(self.latency_rows - 1, 0) // self.rows_per_step

    @property
    def effect_row(self) -> int:
        """Row of that step, 1..rows_per_step, at which it takes effect; 0: at the row it was taken on."""
        return self.latency_rows - self.pipeline_steps * self.rows_per_step

    @property
    def value_per_price(self) -> float:
        """USD that one unit of position gains when the price rises by one."""
        return self.order_size * self.multiplier


LONGEST_PIPELINE = 20
"""Actions of 3 bits each that fit into the int64 ``pending_action``."""

"""Evaluation: the acting of training without random actions, from evenly spaced rows, and its outcome in dollars."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trainer.exact.tape import Tape
from trainer.learn.acting import Acted, Desk, act
from trainer.learn.step import Trainer, act_tensors, acting_metrics

EVAL_METRICS = ("entropy", "reward_mean", "pnl_usd", "equity_usd", "drawdown_usd", "trades")


class Evaluation:
    """Accumulates on the device: nothing is read before :meth:`summary`."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        device = trainer.device
        self._steps = 0
        self._pnl, self._squares, self._entropy, self._peak, self._fall = torch.zeros(
            5, dtype=torch.float64, device=device
        ).unbind()

    def step(self, tape: Tape, desk: Desk) -> dict[str, Tensor]:
        """One step of all environments; returns the metrics."""
        t = self._trainer
        keys = t.counters.keys(t.step)
        t.take_env(tape, desk, keys)
        t.take_parameters(tape)
        acted = act(
            t.ops, t.config, t.market, t.counters,
            desk=desk, parameters=t.parameters, step=t.step, keys=keys,
            temperature=t.config.eval_temperature, epsilon=0.0,
        )  # fmt: skip
        tape.take("act", act_tensors(acted))
        self._add(acted)
        t.step.add_(1)
        return acting_metrics(acted)

    def _add(self, acted: Acted) -> None:
        pnl = acted.result.pnl.sum()
        self._steps += 1
        self._pnl += pnl
        self._squares += pnl * pnl
        self._entropy += acted.entropy.to(torch.float64).mean()
        self._peak.copy_(torch.maximum(self._peak, self._pnl))
        self._fall.copy_(torch.maximum(self._fall, self._peak - self._pnl))

    def summary(self, desk: Desk) -> dict[str, float | int]:
        """eval_summary.json; definitions in docs/trainer.md."""
        env = desk.env
        pnl, squares, entropy, fall = torch.stack([self._pnl, self._squares, self._entropy, self._fall]).tolist()
        trades, wins = torch.stack([env.trades.sum(), env.wins.sum()]).tolist()
        fees, deepest = torch.stack([env.fees.sum(), env.drawdown.amax()]).tolist()
        if not self._steps:  # the accounts are training's
            trades, wins, fees, deepest = 0, 0, 0.0, 0.0
        steps = max(1, self._steps)
        mean = pnl / steps
        # NaN must come through, and Python's max would drop it depending on the order of its arguments.
        variance = squares / steps - mean * mean
        deviation = math.sqrt(variance) if variance > 0.0 else (variance if math.isnan(variance) else 0.0)
        return {
            "total_pnl_usd": pnl,
            "max_drawdown_usd": fall,
            "max_env_drawdown_usd": deepest,
            "win_rate": wins / trades if trades else 0.0,
            "trades": trades,
            "entropy": entropy / steps,
            "sharpe": mean / deviation if deviation != 0.0 else 0.0,
            "fees_usd": fees,
            "eval_steps": self._steps,
            "environments": self._trainer.config.envs,
        }

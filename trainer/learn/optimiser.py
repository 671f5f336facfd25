"""AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) over one flat buffer, parameters in dataflow order.

Elementwise but for the norm, so the order of parameters cannot change a bit and no host value is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.config import TrainerConfig
from trainer.model.parameters import Layout
from trainer.ops import Operators


@dataclass(frozen=True, kw_only=True)
class Moments:
    """First and second moments, flat float32 [total]."""

    m: Tensor
    v: Tensor


class AdamW:
    """Moments and the update; ``decay`` marks the elements that decay."""

    def __init__(self, ops: Operators, layout: Layout, config: TrainerConfig) -> None:
        self._ops = ops
        self._config = config
        self.moments = Moments(m=layout.zeros(ops.device), v=layout.zeros(ops.device))
        self._decay = layout.decay_mask(ops.device) * (config.lr * config.weight_decay)

    def clip(self, gradient: Tensor) -> Tensor:
        """Scale ``gradient`` in place to a global norm of at most ``grad_clip``; returns the norm before."""
        norm = self._ops.global_norm(gradient)
        gradient.mul_((self._config.grad_clip / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def update(self, parameters: Tensor, gradient: Tensor, step: Tensor) -> None:
        """One update in place; ``step`` int64 [] counts from 0."""
        c, m, v = self._config, self.moments.m, self.moments.v
        m.mul_(c.beta1).add_(gradient, alpha=1.0 - c.beta1)
        v.mul_(c.beta2).addcmul_(gradient, gradient, value=1.0 - c.beta2)
        count = (step + 1).to(torch.float64)
        correction_m = 1.0 - self._ops.power(torch.full_like(count, c.beta1), count)
        correction_v = 1.0 - self._ops.power(torch.full_like(count, c.beta2), count)
        rate = (c.lr / correction_m).to(torch.float32)
        root = self._ops.sqrt(v * (1.0 / correction_v).to(torch.float32)).add_(c.adam_epsilon)
        change = (m / root).mul_(rate)
        parameters.sub_(parameters * self._decay).sub_(change)

    def follow(self, target: Tensor, parameters: Tensor) -> None:
        """The target's exponential average: target += tau (parameters - target), in place."""
        target.add_(parameters - target, alpha=self._config.target_tau)

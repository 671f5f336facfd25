"""Losses: C51 cross entropy with double Q, advantage-weighted policy with entropy, value; each a leaf or a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from trainer.config import TrainerConfig
from trainer.model.heads import ATOMS
from trainer.model.network import Activations
from trainer.ops import Operators

# Peng et al. 2019 (arXiv 1910.00177) cut the policy weight at 20; its logarithm.
LARGEST_LOG_WEIGHT = 3.0


class Support:
    """The atoms of the return distribution: float32 [ATOMS] from ``low`` to ``high``."""

    def __init__(self, config: TrainerConfig, device: torch.device) -> None:
        self.low, self.high = config.v_min, config.v_max
        spacing = (self.high - self.low) / (ATOMS - 1)
        self.atoms = torch.tensor([self.low + i * spacing for i in range(ATOMS)], dtype=torch.float32, device=device)


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Per-sample losses [b] and their weighted sum; ``target_value`` [b] is the mean of the projected target."""

    q: Tensor
    pi: Tensor
    v: Tensor
    entropy: Tensor
    target_value: Tensor
    total: Tensor


def added(ops: Operators, parts: Sequence[Losses]) -> Losses:
    """The losses of a batch from those of its parts, totals added in order."""
    total = parts[0].total
    for part in parts[1:]:
        total = total + part.total
    joined = {f.name: ops.cat([getattr(p, f.name) for p in parts], 0) for f in fields(Losses) if f.name != "total"}
    return Losses(**joined, total=total)


def target_distribution(
    ops: Operators,
    support: Support,
    *,
    online_next: Tensor,
    target_next: Tensor,
    reward: Tensor,
    discount: Tensor,
) -> Tensor:
    """Projected distribution of the return, [b, ATOMS].

    The online network chooses the next action, the target network values it (van Hasselt et al. 2016). Both
    logits [b, actions, ATOMS]; ``discount`` [b] is 0 where the episode ended.
    """
    expected = (ops.softmax(online_next) * support.atoms).sum(-1)
    chosen = ops.one_hot(ops.argmax(expected), expected.shape[1])
    probabilities = (ops.softmax(target_next) * chosen[:, :, None]).sum(1)
    return ops.project_distribution(probabilities, reward, discount, support.atoms, support.low, support.high)


def losses(
    ops: Operators,
    config: TrainerConfig,
    support: Support,
    *,
    outputs: Activations,
    action: Tensor,
    target: Tensor,
    weights: Tensor,
    batch: int,
) -> Losses:
    """Losses of a part of a batch of ``batch`` samples; the parts' totals add up to the batch's mean.

    ``action`` int64 [b], ``target`` [b, ATOMS], importance ``weights`` [b].
    """
    chosen = ops.one_hot(action, outputs.pi_logits.shape[1])
    log_q = (ops.log_softmax(outputs.q_logits) * chosen[:, :, None]).sum(1)
    q = -(target * log_q).sum(-1)
    target_value = (target * support.atoms).sum(-1)
    advantage = (target_value - outputs.v_value).detach()
    policy_weight = ops.exp((advantage / config.advantage_scale).clamp(max=LARGEST_LOG_WEIGHT))
    log_pi = ops.log_softmax(outputs.pi_logits)
    pi = -policy_weight * (log_pi * chosen).sum(-1)
    entropy = -(ops.exp(log_pi) * log_pi).sum(-1)
    error = outputs.v_value - target_value
    v = 0.5 * error * error
    policy = config.pi_coefficient * pi - config.entropy_coefficient * entropy
    total = (weights * (q + policy + config.v_coefficient * v)).sum() * (1.0 / batch)
    return Losses(q=q, pi=pi, v=v, entropy=entropy, target_value=target_value, total=total)

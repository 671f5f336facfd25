"""Losses: C51 cross entropy with double Q, advantage-weighted policy with entropy, value; each a leaf or a metric."""

from __future__ import annotations

from dataclasses import dataclass

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
) -> Losses:
    """Losses of one batch: ``action`` int64 [b], ``target`` [b, ATOMS], importance ``weights`` [b]."""
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
    total = (weights * (q + policy + config.v_coefficient * v)).mean()
    return Losses(q=q, pi=pi, v=v, entropy=entropy, target_value=target_value, total=total)

"""Acting, in training and evaluation alike: observe, one forward pass, an action, one step of the market."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.config import TrainerConfig
from trainer.data.book import Book
from trainer.exact.counters import Counters, Purpose
from trainer.market.environment import Market, MarketState, StepResult
from trainer.model import network
from trainer.ops import Operators


@dataclass(kw_only=True)
class Desk:
    """Environments and what they carry: ``h`` float32 [envs, width], the CfC state before the step."""

    book: Book
    chunk: Tensor
    env: MarketState
    h: Tensor


@dataclass(frozen=True, kw_only=True)
class Acted:
    """One acting step: what was seen, done and earned. ``entropy`` float32 [envs] of the policy, in nats."""

    features: Tensor
    agent: Tensor
    outputs: network.Activations
    entropy: Tensor
    action: Tensor
    result: StepResult


def open_desk(config: TrainerConfig, market: Market, book: Book, chunk: int, uniform: Tensor, width: int) -> Desk:
    """Fresh accounts at rows that ``uniform`` float32 [envs] chooses."""
    cursor = market.offsets(uniform, book.rows, config.window)
    return Desk(
        book=book,
        chunk=torch.full((), chunk, dtype=torch.int64, device=uniform.device),
        env=market.reset(book, cursor),
        h=torch.zeros(config.envs, width, dtype=torch.float32, device=uniform.device),
    )


@torch.no_grad()
def act(
    ops: Operators,
    config: TrainerConfig,
    market: Market,
    counters: Counters,
    *,
    desk: Desk,
    parameters: Mapping[str, Tensor],
    step: Tensor,
    keys: Tensor,
    temperature: float,
    epsilon: float,
) -> Acted:
    """One step of all environments; ``desk`` moves on in place.

    Actions are drawn from the policy, a share ``epsilon`` uniformly. The same operations run in training and in
    evaluation, whose epsilon is 0.
    """
    features, agent = market.observe(desk.book, desk.env, config.window)
    outputs = passed(ops, config, parameters, features, agent, desk.h)
    log_pi = ops.log_softmax(outputs.pi_logits)
    entropy = -(ops.exp(log_pi) * log_pi).sum(-1)
    action = choose(ops, counters, keys, outputs.pi_logits, temperature, epsilon)
    result = market.step(desk.book, desk.env, action, step)
    desk.env = result.state
    # An episode that ended starts the next one without a memory of it.
    desk.h = torch.where(result.done[:, None], 0.0, outputs.encoder_output)
    return Acted(features=features, agent=agent, outputs=outputs, entropy=entropy, action=action, result=result)


@torch.no_grad()
def passed(
    ops: Operators, config: TrainerConfig, p: Mapping[str, Tensor], features: Tensor, agent: Tensor, h: Tensor
) -> network.Activations:
    """One forward pass without gradients; shapes as in :func:`trainer.model.network.forward`."""
    parts = [
        network.forward(ops, p, features[part], agent[part], h[part], config.scan_head_dim)
        for part in network.blocks(ops, features, config.width)
    ]
    return network.joined(ops, parts)


def choose(
    ops: Operators, counters: Counters, keys: Tensor, logits: Tensor, temperature: float, epsilon: float
) -> Tensor:
    """Actions int64 [envs] from policy ``logits`` [envs, actions] by Gumbel-max; ``temperature`` 0: the likeliest."""
    envs, actions = logits.shape
    half = 1.0 / (1 << 25)  # the middle of the draw's cell: never the 0 or 1 whose logarithm is infinite
    draw = counters.uniform(keys, Purpose.ACTION_GUMBEL, envs * actions).view(envs, actions) + half
    gumbel = -ops.log(-ops.log(draw))
    chosen = ops.argmax(logits + gumbel * temperature)
    at_random = counters.uniform(keys, Purpose.ACTION_EPSILON, envs) < epsilon
    uniform = (counters.uniform(keys, Purpose.ACTION_UNIFORM, envs) * actions).to(torch.int64)
    return torch.where(at_random, uniform, chosen)

"""One training step: act in every environment, store, learn from a prioritised batch. No host value is read in it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from torch import Tensor

from trainer import faults
from trainer.config import TrainerConfig
from trainer.data.book import SCALARS, VARIABLES
from trainer.exact.counters import Counters, Purpose
from trainer.exact.tape import Tape
from trainer.learn import leaves
from trainer.learn.acting import Acted, Desk, act, passed
from trainer.learn.losses import Losses, Support, added, losses, target_distribution
from trainer.learn.optimiser import AdamW
from trainer.learn.replay import Replay, Sample, Transition
from trainer.market.environment import ACTIONS, Market, MarketConfig
from trainer.model import network
from trainer.model.parameters import Layout
from trainer.ops import Operators

_Values = TypeVar("_Values", network.Activations, Losses)

TRAIN_METRICS = (
    "loss", "q_loss", "pi_loss", "v_loss", "entropy", "batch_entropy", "grad_norm", "target_value_mean",
    "v_value_mean", "priority_mean", "reward_mean", "pnl_usd", "equity_usd", "drawdown_usd", "trades", "win_rate_ema",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What one learning batch gave, as far as leaves and metrics need it."""

    sample: Sample
    outputs: network.Activations
    next_q_logits: Tensor
    target_next_q_logits: Tensor
    target: Tensor
    losses: Losses
    gradients: dict[str, Tensor]
    output_gradients: tuple[Tensor, ...]
    grad_norm: Tensor
    priorities: Tensor


class Trainer:
    """Everything that crosses steps, and the step."""

    def __init__(
        self,
        ops: Operators,
        config: TrainerConfig,
        market_config: MarketConfig,
        *,
        seed: int,
        fault: faults.Fault,
    ) -> None:
        device = ops.device
        self.ops, self.config, self.fault, self.device = ops, config, fault, device
        self.market = Market(market_config)
        self.counters = Counters(seed, device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.layout: Layout = network.layout(
            network.Shape(
                variables=VARIABLES,
                scalars=SCALARS,
                agent=Market.OBSERVED,
                width=config.width,
                state=config.state,
                head_dim=config.scan_head_dim,
                actions=len(ACTIONS),
            )
        )
        self.flat = self.layout.initialise(seed, device)
        self.flat_target = self.flat.clone()
        self.parameters = self.layout.views(self.flat)
        self.target = self.layout.views(self.flat_target)
        self._trainable = {name: view.detach().requires_grad_() for name, view in self.parameters.items()}
        self._gradient = self.layout.zeros(device)
        self.optimiser = AdamW(ops, self.layout, config)
        self.support = Support(config, device)
        self.win_rate_ema = torch.full((), 0.5, dtype=torch.float64, device=device)
        self.replay = Replay(
            ops,
            envs=config.envs,
            capacity=config.capacity,
            shapes=self._transition_shapes(),
            beta=config.priority_beta,
        )
        self._weights = tuple(self.parameters.values())
        self._moment_sums = torch.zeros(2, dtype=torch.float64, device=device).unbind()
        averages = (self.flat_target, self.optimiser.moments.m, self.optimiser.moments.v)
        self._crossing = (
            self.win_rate_ema,
            self.replay.max_priority,
            self.replay.inner,
            self.replay.priorities,
            *(view for flat in averages for view in self.layout.views(flat).values()),
            *self._moment_sums,
        )

    def train(self, tape: Tape, desk: Desk, step: int) -> dict[str, Tensor]:
        """One step; ``step`` is the host's copy of the number, for faults alone. Returns the metrics."""
        keys = self.counters.keys(self.step)
        self.take_env(tape, desk, keys)
        self.take_parameters(tape)
        self.take_learner(tape)
        before_h, before = desk.h, desk.env
        acted = act(
            self.ops, self.config, self.market, self.counters,
            desk=desk, parameters=self.parameters, step=self.step, keys=keys,
            temperature=1.0, epsilon=self.config.epsilon,
        )  # fmt: skip
        tape.take("act", act_tensors(acted))
        self._store(desk, acted, before_h)
        learned = self._learn(keys, step)
        tape.take("learn", learn_tensors(self.layout, learned))
        closed = (acted.result.state.trades - before.trades).sum()
        won = (acted.result.state.wins - before.wins).sum()
        rate = won.to(torch.float64) / closed.clamp(min=1).to(torch.float64)
        decay = self.config.win_rate_decay
        moved = self.win_rate_ema * decay + rate * (1.0 - decay)
        self.win_rate_ema.copy_(torch.where(closed > 0, moved, self.win_rate_ema))
        metrics = self._metrics(acted, learned)
        self.step.add_(1)
        return metrics

    def take_env(self, tape: Tape, desk: Desk, keys: Tensor) -> None:
        """Record counters, cursor, environments and carried state, as the step reads them."""
        first = leaves.ACTION_PURPOSES[0] - 1
        action_keys = keys[first : first + len(leaves.ACTION_PURPOSES)]
        env = [tensor for _, tensor in leaves.env_leaves(desk.env)]
        tape.take("env", [self.step, keys, action_keys, desk.chunk, *env, desk.h])

    def take_parameters(self, tape: Tape) -> None:
        """Record the weights as the step reads them."""
        tape.take("parameters", self._weights)

    def take_learner(self, tape: Tape) -> None:
        """Record controllers, replay, target and moments as the step reads them."""
        moments = self.optimiser.moments
        self._moment_sums[0].copy_(moments.m.sum(dtype=torch.float64))
        self._moment_sums[1].copy_(moments.v.sum(dtype=torch.float64))
        tape.take("learner", self._crossing)

    def _transition_shapes(self) -> Transition:
        c = self.config
        meta = torch.device("meta")

        def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.empty(c.envs, *shape, dtype=dtype, device=meta)

        return Transition(
            features=empty(c.window + c.rows_per_step, VARIABLES, SCALARS),
            agent=empty(Market.OBSERVED),
            next_agent=empty(Market.OBSERVED),
            h=empty(c.width),
            next_h=empty(c.width),
            action=empty(dtype=torch.int64),
            reward=empty(),
            done=empty(),
        )

    def _store(self, desk: Desk, acted: Acted, before_h: Tensor) -> None:
        rows, next_agent = self.market.observe(desk.book, desk.env, self.config.rows_per_step)
        transition = Transition(
            features=torch.cat([acted.features, rows], 1),
            agent=acted.agent,
            next_agent=next_agent,
            h=before_h,
            next_h=acted.outputs.encoder_output,
            action=acted.action,
            reward=acted.result.reward,
            done=acted.result.done.to(torch.float32),
        )
        self.replay.store(self.step, transition)

    def _learn(self, keys: Tensor, step: int) -> Learned:
        ops, c = self.ops, self.config
        uniform = self.counters.uniform(keys, Purpose.REPLAY_SAMPLE, c.batch_size)
        uniform = faults.sample_uniform(self.fault, step, uniform)
        sample = self.replay.sample(self.step, uniform, faults.batch_order(self.fault, step, c.batch_size))
        t = sample.transitions
        if self.fault.at("nan", step):
            t.reward[:1] = float("nan")
        later = t.features[:, c.rows_per_step :]
        online_next = passed(ops, c, self.parameters, later, t.next_agent, t.next_h).q_logits
        target_next = passed(ops, c, self.target, later, t.next_agent, t.next_h).q_logits
        target = target_distribution(
            ops, self.support,
            online_next=online_next, target_next=target_next, reward=t.reward, discount=(1.0 - t.done) * c.gamma,
        )  # fmt: skip
        outputs, loss, output_gradients, named = self._gradients(sample, target)
        with torch.no_grad():
            flat = self.layout.gather(named, self._gradient)
            norm = self.optimiser.clip(flat)
            self.optimiser.update(self.flat, flat, self.step)
            self.optimiser.follow(self.flat_target, self.flat)
            priorities = ops.power(loss.q.clamp(min=0.0) + c.priority_floor, c.priority_alpha)
            priorities = faults.unset_scale(self.fault, step, priorities)
            self.replay.update(sample.indices, priorities)
        return Learned(
            sample=sample, outputs=outputs, next_q_logits=online_next, target_next_q_logits=target_next,
            target=target, losses=loss, gradients=named, output_gradients=output_gradients,
            grad_norm=norm, priorities=priorities,
        )  # fmt: skip

    def _gradients(
        self, sample: Sample, target: Tensor
    ) -> tuple[network.Activations, Losses, tuple[Tensor, ...], dict[str, Tensor]]:
        """Forward and backward: activations, losses, gradients of the heads' outputs and encoder's, of parameters.

        Blocks of the batch one after the other; their gradients are added in this order.
        """
        ops, c, t = self.ops, self.config, sample.transitions
        features = t.features[:, : c.window]
        outputs, found, above = [], [], []
        total: list[Tensor] = []
        for part in network.blocks(ops, features, c.width):
            p = self._trainable
            out = network.forward(ops, p, features[part], t.agent[part], t.h[part], c.scan_head_dim)
            loss = losses(
                ops, c, self.support, outputs=out, action=t.action[part], target=target[part],
                weights=sample.weights[part], batch=c.batch_size,
            )  # fmt: skip
            heads = [out.q_logits, out.pi_logits, out.v_value, out.encoder_output]
            gradients = torch.autograd.grad(loss.total, [*heads, *p.values()])
            outputs.append(detached(out))
            found.append(detached(loss))
            above.append(gradients[: len(heads)])
            own = list(gradients[len(heads) :])
            if total:
                torch._foreach_add_(total, own)
            else:
                total = own
        upper = tuple(ops.cat(list(parts), 0) for parts in zip(*above, strict=True))
        return network.joined(ops, outputs), added(ops, found), upper, dict(zip(self._trainable, total, strict=True))

    def _metrics(self, acted: Acted, learned: Learned) -> dict[str, Tensor]:
        found = learned.losses
        return {
            "loss": found.total,
            "q_loss": found.q.mean(),
            "pi_loss": found.pi.mean(),
            "v_loss": found.v.mean(),
            "batch_entropy": found.entropy.mean(),
            "grad_norm": learned.grad_norm,
            "target_value_mean": found.target_value.mean(),
            "v_value_mean": learned.outputs.v_value.mean(),
            "priority_mean": learned.priorities.mean(),
            "win_rate_ema": self.win_rate_ema.clone(),
            **acting_metrics(acted),
        }


def detached(values: _Values) -> _Values:
    """The same values without the graph that made them, whose memory the next block can use."""
    return type(values)(**{f.name: getattr(values, f.name).detach() for f in fields(values)})


def acting_metrics(acted: Acted) -> dict[str, Tensor]:
    """Metrics that training and evaluation share."""
    result = acted.result
    return {
        "entropy": acted.entropy.mean(),
        "reward_mean": result.reward.mean(),
        "pnl_usd": result.pnl.sum(),
        "equity_usd": result.equity.sum(),
        "drawdown_usd": result.state.drawdown.amax(),
        "trades": result.state.trades.sum(),
    }


def act_tensors(acted: Acted) -> list[Tensor]:
    """The group ``act`` of the tape."""
    result = acted.result
    outputs = [tensor for _, tensor in acted.outputs.items()]
    ending = [acted.action, result.reward, result.done, result.pnl, result.equity, result.filled]
    return [acted.features, acted.agent, *outputs, *ending]


def learn_tensors(layout: Layout, learned: Learned) -> list[Tensor]:
    """The group ``learn`` of the tape."""
    sample, found = learned.sample, learned.losses
    batch = [getattr(sample.transitions, f.name) for f in fields(Transition)]
    backwards = [learned.gradients[p.name] for p in leaves.gradient_order(layout)]
    heads = leaves.head_gradients(layout)
    q_grad, pi_grad, v_grad, encoder_grad = learned.output_gradients
    return [
        sample.indices, sample.weights, *batch,
        learned.next_q_logits, learned.target_next_q_logits, learned.target,
        *(tensor for _, tensor in learned.outputs.items()),
        found.q, found.pi, found.v, found.total,
        q_grad, pi_grad, v_grad, *backwards[:heads], encoder_grad, *backwards[heads:],
        learned.grad_norm, learned.priorities,
    ]  # fmt: skip

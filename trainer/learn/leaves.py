"""The leaves of a step, declared in dataflow order: state as the step reads it, acting, learning, gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.config import TrainerConfig
from trainer.data.book import SCALARS, VARIABLES
from trainer.exact.counters import Purpose
from trainer.exact.tape import LeafSpec
from trainer.market.environment import ACTIONS, Market, MarketState
from trainer.model.heads import ATOMS
from trainer.model.network import COMPONENTS
from trainer.model.parameters import Layout, Parameter

RESERVED = ("iqn_quantiles", "popart_sigma", "kelly")
"""Leaves of parts that are not built yet; nothing else may take their names."""

CHECKSUMS = (
    "encoder_output", "q_logits", "pi_logits", "v_value", "q_grad", "pi_grad", "v_grad", "encoder_grad", "adam_m_sum",
    "adam_v_sum", "replay_sample_indices", "replay_priorities", "replay_tree", "mamba2_l1_w_in", "mamba2_l1_w_a",
    "mamba2_l1_w_b", "mamba2_l1_w_c", "mamba2_l2_w_in", "mamba2_l2_w_c", "vsn_w", "cfc_w_in", "cfc_w_rec", "attn_q",
    "vsn_out", "mamba2_l1_out", "ln_a_out", "mamba2_l2_out", "ln_b_out", "attn_context", "mamba2_grad_w_c_l1",
    "cfc_h_state", "action_rng", "env_position", "env_cash", "env_pyramid_units", "env_entry_step", "reward",
    "win_rate_ema", "act_encoder_output", "act_q_logits", "act_pi_logits", "act_v_value", "act_action",
)  # fmt: skip
"""Leaves whose float64 sum diag.jsonl holds."""

_F32, _F64, _I64 = torch.float32, torch.float64, torch.int64
ACTION_PURPOSES = (Purpose.ACTION_GUMBEL, Purpose.ACTION_EPSILON, Purpose.ACTION_UNIFORM)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the shapes of leaves depend on besides the configuration."""

    replay_leaves: int
    replay_capacity: int


def _spec(name: str, component: str, kind: str, group: str, shape: tuple[int, ...], dtype: torch.dtype) -> LeafSpec:
    return LeafSpec(
        name=name, component=component, kind=kind, group=group, shape=shape, dtype=dtype, checksum=name in CHECKSUMS
    )


def declare(config: TrainerConfig, layout: Layout, env: MarketState, sizes: Sizes) -> list[LeafSpec]:
    """Every leaf of a run, in dataflow order."""
    envs, width = config.envs, config.width

    def state(name: str, component: str, shape: tuple[int, ...], dtype: torch.dtype, group: str) -> LeafSpec:
        return _spec(name, component, "state", group, shape, dtype)

    specs = [
        state("step", "data", (), _I64, "env"),
        state("rng_counters", "rng", (len(Purpose),), _I64, "env"),
        state("action_rng", "rng", (len(ACTION_PURPOSES),), _I64, "env"),
        state("data_chunk", "data", (), _I64, "env"),
        *(state(name, "environment", tuple(t.shape), t.dtype, "env") for name, t in env_leaves(env)),
        state("cfc_h_state", "cfc", (envs, width), _F32, "env"),
        *(_spec(p.name, p.component, "weight", "parameters", p.shape, _F32) for p in layout.parameters),
        state("win_rate_ema", "controllers", (), _F64, "learner"),
        state("replay_max_priority", "replay", (), _F32, "learner"),
        state("replay_tree", "replay", (sizes.replay_leaves,), _F32, "learner"),
        state("replay_priorities", "replay", (sizes.replay_capacity,), _F32, "learner"),
        *(_spec(f"target_{p.name}", p.component, "weight", "learner", p.shape, _F32) for p in layout.parameters),
        *(_spec(f"adam_m_{p.name}", "optimiser", "moment", "learner", p.shape, _F32) for p in layout.parameters),
        *(_spec(f"adam_v_{p.name}", "optimiser", "moment", "learner", p.shape, _F32) for p in layout.parameters),
        _spec("adam_m_sum", "optimiser", "moment", "learner", (), _F64),
        _spec("adam_v_sum", "optimiser", "moment", "learner", (), _F64),
    ]
    specs += _acting(config)
    specs += _learning(config, layout)
    return specs


def env_leaves(env: MarketState) -> list[tuple[str, Tensor]]:
    """The environments' state by leaf name: ``env_position`` is signed, ``env_pyramid_units`` how many are stacked."""
    leaves = []
    for name, tensor in zip(env._fields, env, strict=True):
        if name == "position_units":
            leaves += [("env_position", tensor), ("env_pyramid_units", tensor.abs())]
        else:
            leaves.append((f"env_{name}", tensor))
    return leaves


def _activations(config: TrainerConfig, batch: int) -> list[tuple[str, tuple[int, ...]]]:
    width, window, actions = config.width, config.window, len(ACTIONS)
    shapes: dict[str, tuple[int, ...]] = {
        "attn_context": (batch, width),
        "encoder_output": (batch, width),
        "q_logits": (batch, actions, ATOMS),
        "pi_logits": (batch, actions),
        "v_value": (batch,),
    }
    return [(name, shapes.get(name, (batch, window, width))) for name in COMPONENTS]


def _acting(config: TrainerConfig) -> list[LeafSpec]:
    envs = config.envs

    def spec(name: str, component: str, kind: str, shape: tuple[int, ...], dtype: torch.dtype) -> LeafSpec:
        return _spec(name, component, kind, "act", shape, dtype)

    return [
        spec("act_features", "data", "activation", (envs, config.window, VARIABLES, SCALARS), _F32),
        spec("act_agent", "environment", "activation", (envs, Market.OBSERVED), _F32),
        *(spec(f"act_{n}", COMPONENTS[n], "activation", shape, _F32) for n, shape in _activations(config, envs)),
        spec("act_action", "pi", "activation", (envs,), _I64),
        spec("reward", "environment", "state", (envs,), _F32),
        spec("act_done", "environment", "state", (envs,), torch.bool),
        spec("act_pnl", "environment", "state", (envs,), _F64),
        spec("act_equity", "environment", "state", (envs,), _F64),
        spec("act_filled", "environment", "state", (envs,), _I64),
    ]


def _learning(config: TrainerConfig, layout: Layout) -> list[LeafSpec]:
    batch, width, actions = config.batch_size, config.width, len(ACTIONS)
    rows = config.window + config.rows_per_step

    def spec(name: str, component: str, kind: str, shape: tuple[int, ...], dtype: torch.dtype = _F32) -> LeafSpec:
        return _spec(name, component, kind, "learn", shape, dtype)

    return [
        spec("replay_sample_indices", "replay", "activation", (batch,), _I64),
        spec("replay_weights", "replay", "activation", (batch,)),
        spec("batch_features", "replay", "activation", (batch, rows, VARIABLES, SCALARS)),
        spec("batch_agent", "replay", "activation", (batch, Market.OBSERVED)),
        spec("batch_next_agent", "replay", "activation", (batch, Market.OBSERVED)),
        spec("batch_h", "replay", "activation", (batch, width)),
        spec("batch_next_h", "replay", "activation", (batch, width)),
        spec("batch_action", "replay", "activation", (batch,), _I64),
        spec("batch_reward", "replay", "activation", (batch,)),
        spec("batch_done", "replay", "activation", (batch,)),
        spec("next_q_logits", "q", "activation", (batch, actions, ATOMS)),
        spec("target_next_q_logits", "q", "activation", (batch, actions, ATOMS)),
        spec("target_distribution", "q", "activation", (batch, ATOMS)),
        *(spec(name, COMPONENTS[name], "activation", shape) for name, shape in _activations(config, batch)),
        spec("q_loss", "q", "activation", (batch,)),
        spec("pi_loss", "pi", "activation", (batch,)),
        spec("v_loss", "v", "activation", (batch,)),
        spec("loss", "loss", "activation", ()),
        spec("q_grad", "q", "gradient", (batch, actions, ATOMS)),
        spec("pi_grad", "pi", "gradient", (batch, actions)),
        spec("v_grad", "v", "gradient", (batch,)),
        *(spec(p.gradient_name, p.component, "gradient", p.shape) for p in gradient_order(layout) if _is_head(p)),
        spec("encoder_grad", "cfc", "gradient", (batch, width)),
        *(spec(p.gradient_name, p.component, "gradient", p.shape) for p in gradient_order(layout) if not _is_head(p)),
        spec("grad_norm", "optimiser", "gradient", ()),
        spec("replay_new_priorities", "replay", "activation", (batch,)),
    ]


def _is_head(parameter: Parameter) -> bool:
    return parameter.component in ("q", "pi", "v")


def gradient_order(layout: Layout) -> list[Parameter]:
    """Parameters in the order in which their gradients arise: from the heads back to the first layer."""
    return list(reversed(layout.parameters))


def head_gradients(layout: Layout) -> int:
    """How many gradients come before ``encoder_grad``."""
    return sum(1 for p in layout.parameters if _is_head(p))

"""The whole network: VSN -> Mamba2 -> LN a -> Mamba2 -> LN b -> attention pooling -> CfC -> heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from torch import Tensor

from trainer.model import cfc, heads, mamba2, pooling, vsn
from trainer.model.parameters import Layout, Parameter
from trainer.ops import Operators


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes that decide every parameter's shape."""

    variables: int
    scalars: int
    agent: int
    width: int
    state: int
    head_dim: int
    actions: int


@dataclass(frozen=True, kw_only=True)
class Activations:
    """What one forward pass gives, in dataflow order; the names are the leaves' names."""

    vsn_out: Tensor
    mamba2_l1_out: Tensor
    ln_a_out: Tensor
    mamba2_l2_out: Tensor
    ln_b_out: Tensor
    attn_context: Tensor
    encoder_output: Tensor
    q_logits: Tensor
    pi_logits: Tensor
    v_value: Tensor

    def items(self) -> list[tuple[str, Tensor]]:
        """(name, tensor) in dataflow order."""
        return [(f.name, getattr(self, f.name)) for f in fields(self)]


COMPONENTS = {
    "vsn_out": "vsn",
    "mamba2_l1_out": "mamba2_l1",
    "ln_a_out": "ln_a",
    "mamba2_l2_out": "mamba2_l2",
    "ln_b_out": "ln_b",
    "attn_context": "attn",
    "encoder_output": "cfc",
    "q_logits": "q",
    "pi_logits": "pi",
    "v_value": "v",
}


def joined(ops: Operators, parts: Sequence[Activations]) -> Activations:
    """The activations of several blocks of one batch, as one."""
    if len(parts) == 1:
        return parts[0]
    return Activations(**{f.name: ops.cat([getattr(p, f.name) for p in parts], 0) for f in fields(Activations)})


def blocks(ops: Operators, features: Tensor, width: int) -> list[slice]:
    """The parts of a batch that pass through the network one after the other."""
    count, window = features.shape[:2]
    size = ops.block(window * width, count)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def layout(shape: Shape) -> Layout:
    """Every parameter in dataflow order."""

    def norm(component: str) -> list[Parameter]:
        return [
            Parameter(name=f"{component}_w", component=component, shape=(shape.width,), values=(1.0,)),
            Parameter(name=f"{component}_b", component=component, shape=(shape.width,)),
        ]

    return Layout(
        [
            *vsn.parameters(shape.variables, shape.scalars, shape.width),
            *mamba2.parameters("l1", shape.width, shape.state, shape.head_dim),
            *norm("ln_a"),
            *mamba2.parameters("l2", shape.width, shape.state, shape.head_dim),
            *norm("ln_b"),
            *pooling.parameters(shape.width),
            *cfc.parameters(shape.width + shape.agent, shape.width),
            *heads.parameters(shape.width, shape.actions),
        ]
    )


def forward(
    ops: Operators, p: Mapping[str, Tensor], features: Tensor, agent: Tensor, h: Tensor, head_dim: int
) -> Activations:
    """One pass.

    ``features`` float32 [b, window, variables, scalars]; ``agent`` float32 [b, agent]; ``h`` float32 [b, width],
    the cell's state before the step. ``encoder_output`` is the cell's state after it.
    """
    vsn_out = vsn.forward(ops, p, features)
    l1_out = vsn_out + mamba2.forward(ops, p, "l1", vsn_out, head_dim)
    ln_a_out = ops.layer_norm(l1_out, p["ln_a_w"], p["ln_a_b"])
    l2_out = ln_a_out + mamba2.forward(ops, p, "l2", ln_a_out, head_dim)
    ln_b_out = ops.layer_norm(l2_out, p["ln_b_w"], p["ln_b_b"])
    context = pooling.forward(ops, p, ln_b_out)
    encoded = cfc.forward(ops, p, ops.cat([context, agent], 1), h)
    q_logits, pi_logits, v_value = heads.forward(ops, p, encoded)
    return Activations(
        vsn_out=vsn_out,
        mamba2_l1_out=l1_out,
        ln_a_out=ln_a_out,
        mamba2_l2_out=l2_out,
        ln_b_out=ln_b_out,
        attn_context=context,
        encoder_output=encoded,
        q_logits=q_logits,
        pi_logits=pi_logits,
        v_value=v_value,
    )

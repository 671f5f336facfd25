"""The heads: distributional Q over 51 atoms (C51, Bellemare et al. 2017), policy, value; a hidden layer each."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from trainer.model.parameters import Parameter
from trainer.ops import Operators

ATOMS = 51


def parameters(width: int, actions: int) -> list[Parameter]:
    """Parameters of the three heads, in dataflow order."""
    made = []
    for component, outputs in (("q", actions * ATOMS), ("pi", actions), ("v", 1)):
        for name, shape, fan_in in (
            ("w_hidden", (width, width), width),
            ("b_hidden", (width,), 0),
            ("w_out", (width, outputs), width),
            ("b_out", (outputs,), 0),
        ):
            made.append(
                Parameter(name=f"{component}_{name}", component=component, shape=shape, fan_in=fan_in, decay=fan_in > 0)
            )
    return made


def forward(ops: Operators, p: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """[b, width] -> q_logits [b, actions, ATOMS], pi_logits [b, actions], v_value [b]."""

    def head(name: str) -> Tensor:
        hidden = ops.silu(ops.linear(x, p[f"{name}_w_hidden"], p[f"{name}_b_hidden"]))
        return ops.linear(hidden, p[f"{name}_w_out"], p[f"{name}_b_out"])

    q = head("q")
    return q.view(x.shape[0], -1, ATOMS), head("pi"), head("v")[:, 0]

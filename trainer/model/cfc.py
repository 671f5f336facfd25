"""Closed-form continuous-time cell (Hasani et al. 2022, arXiv 2106.13898, equation 10), state carried over steps."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from trainer.model.parameters import Parameter
from trainer.ops import Operators


def parameters(inputs: int, width: int) -> list[Parameter]:
    """Parameters of the cell, in dataflow order. Branches: g, h, and the two of the time gate."""

    def make(name: str, shape: tuple[int, ...], fan_in: int) -> Parameter:
        return Parameter(name=name, component="cfc", shape=shape, fan_in=fan_in, decay=fan_in > 0)

    return [
        make("cfc_w_in", (inputs, width), inputs),
        make("cfc_w_rec", (width, width), width),
        make("cfc_b", (width,), 0),
        make("cfc_w_g", (width, width), width),
        make("cfc_b_g", (width,), 0),
        make("cfc_w_h", (width, width), width),
        make("cfc_b_h", (width,), 0),
        make("cfc_w_time", (width, width), width),
        make("cfc_b_time", (width,), 0),
    ]


def forward(ops: Operators, p: Mapping[str, Tensor], x: Tensor, h: Tensor) -> Tensor:
    """Input [b, inputs] and state [b, width] -> new state [b, width]. One step is one unit of time."""
    driven = ops.sum3(ops.matmul(x, p["cfc_w_in"]), ops.matmul(h, p["cfc_w_rec"]), p["cfc_b"])
    backbone = ops.tanh(driven)
    width = h.shape[1]
    weight = ops.cat([p["cfc_w_g"], p["cfc_w_h"], p["cfc_w_time"]], 1)
    bias = ops.cat([p["cfc_b_g"], p["cfc_b_h"], p["cfc_b_time"]], 0)
    g, steady, time = ops.split(ops.linear(backbone, weight, bias), [width, width, width], 1)
    g, steady, gate = ops.tanh(g), ops.tanh(steady), ops.sigmoid(time)
    return g + gate * (steady - g)

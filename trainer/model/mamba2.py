"""One Mamba-2 block (Dao and Gu 2024, arXiv 2405.21060): projection, short convolution, selective scan, gate.

One group: B and C are shared by the heads. The scan runs over one chunk, the window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from trainer.model.parameters import Parameter
from trainer.ops import Operators

EXPAND = 2
CONV_WIDTH = 4


def parameters(layer: str, width: int, state: int, head_dim: int) -> list[Parameter]:
    """Parameters of block ``layer`` ("l1", "l2"), in dataflow order.

    A starts at -(1..heads) and dt between 1e-3 and 1e-1, log-spaced over the heads, as in the reference
    implementation but without its draw.
    """
    inner = EXPAND * width
    heads = inner // head_dim
    component = f"mamba2_{layer}"
    channels = inner + 2 * state
    times = [1e-3 * 100.0 ** (i / max(1, heads - 1)) for i in range(heads)]

    def matrix(name: str, shape: tuple[int, ...], fan_in: int) -> Parameter:
        return Parameter(name=f"{component}_{name}", component=component, shape=shape, fan_in=fan_in, decay=True)

    def vector(name: str, size: int, values: tuple[float, ...]) -> Parameter:
        return Parameter(name=f"{component}_{name}", component=component, shape=(size,), values=values)

    return [
        matrix("w_in", (width, 2 * inner), width),
        matrix("w_a", (width, heads), width),
        matrix("w_b", (width, state), width),
        matrix("w_c", (width, state), width),
        Parameter(name=f"{component}_conv_w", component=component, shape=(CONV_WIDTH, channels), fan_in=CONV_WIDTH),
        vector("conv_b", channels, (0.0,)),
        vector("dt_bias", heads, tuple(t + math.log(-math.expm1(-t)) for t in times)),
        vector("a_log", heads, tuple(math.log(i + 1) for i in range(heads))),
        vector("d", heads, (1.0,)),
        vector("norm_w", inner, (1.0,)),
        matrix("w_out", (inner, width), inner),
    ]


def forward(ops: Operators, p: Mapping[str, Tensor], layer: str, x: Tensor, head_dim: int) -> Tensor:
    """[b, window, width] -> [b, window, width], without the residual."""
    c = f"mamba2_{layer}_"
    batch, window, width = x.shape
    inner = EXPAND * width
    heads = inner // head_dim
    state = p[c + "w_b"].shape[1]
    weight = ops.cat([p[c + "w_in"], p[c + "w_b"], p[c + "w_c"], p[c + "w_a"]], 1)
    projected = ops.matmul(x.reshape(batch * window, width), weight).view(batch, window, -1)
    gate, xbc, dt = ops.split(projected, [inner, inner + 2 * state, heads], 2)
    xbc = ops.causal_conv_silu(xbc, p[c + "conv_w"], p[c + "conv_b"])
    values, b, c_out = ops.split(xbc, [inner, state, state], 2)
    dt = ops.softplus(dt + p[c + "dt_bias"])
    log_decay = dt * -ops.exp(p[c + "a_log"])
    y = ops.selective_scan(values.view(batch, window, heads, head_dim), dt, log_decay, b, c_out, p[c + "d"])
    y = ops.gated_rms_norm(y.reshape(batch * window, inner), gate.reshape(batch * window, inner), p[c + "norm_w"])
    return ops.matmul(y, p[c + "w_out"]).view(batch, window, width)

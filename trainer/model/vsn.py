"""Variable selection network (Lim et al. 2021, arXiv 1912.09363, section 4.2).

Selection weights come from a gated residual network over all variables; each variable has its own linear
embedding. The weighted sum of linear embeddings is one matrix product over weighted scalars and the weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from trainer.model.parameters import Parameter
from trainer.ops import Operators

HIDDEN = 32


def parameters(variables: int, scalars: int, width: int) -> list[Parameter]:
    """Parameters of the block, in dataflow order."""
    flat = variables * scalars

    def make(name: str, shape: tuple[int, ...], fan_in: int) -> Parameter:
        return Parameter(name=name, component="vsn", shape=shape, fan_in=fan_in, decay=fan_in > 0)

    return [
        make("vsn_grn_w_in", (flat, HIDDEN), flat),
        make("vsn_grn_b_in", (HIDDEN,), 0),
        make("vsn_grn_w_skip", (flat, variables), flat),
        make("vsn_grn_w_gate", (HIDDEN, 2 * variables), HIDDEN),
        make("vsn_grn_b_gate", (2 * variables,), 0),
        Parameter(name="vsn_grn_norm_w", component="vsn", shape=(variables,), values=(1.0,)),
        make("vsn_grn_norm_b", (variables,), 0),
        make("vsn_w", (variables, scalars, width), scalars),
        make("vsn_b", (variables, width), 0),
    ]


def forward(ops: Operators, p: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """[b, window, variables, scalars] -> [b, window, width]."""
    batch, window, variables, scalars = features.shape
    width = p["vsn_w"].shape[2]
    flat = features.reshape(batch * window, variables * scalars)
    hidden = ops.elu(ops.linear(flat, p["vsn_grn_w_in"], p["vsn_grn_b_in"]))
    gated = ops.linear(hidden, p["vsn_grn_w_gate"], p["vsn_grn_b_gate"])
    residual = ops.matmul(flat, p["vsn_grn_w_skip"]) + gated[:, :variables] * ops.sigmoid(gated[:, variables:])
    weights = ops.softmax(ops.layer_norm(residual, p["vsn_grn_norm_w"], p["vsn_grn_norm_b"]))
    weighted = (features.reshape(batch * window, variables, scalars) * weights[:, :, None]).reshape(flat.shape)
    joined = ops.cat([weighted, weights], 1)
    matrix = ops.cat([p["vsn_w"].reshape(variables * scalars, width), p["vsn_b"]], 0)
    return ops.matmul(joined, matrix).view(batch, window, width)

"""Attention pooling over the window with one learned query (Lin et al. 2017, arXiv 1703.03130)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from trainer.model.parameters import Parameter
from trainer.ops import Operators


def parameters(width: int) -> list[Parameter]:
    """Parameters of the pooling, in dataflow order."""
    return [Parameter(name="attn_q", component="attn", shape=(width,), fan_in=width, decay=True)]


def forward(ops: Operators, p: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """[b, window, width] -> [b, width]: rows weighted by softmax of their product with the query."""
    scores = ops.matmul(x, p["attn_q"][:, None]) * (1.0 / math.sqrt(x.shape[2]))
    weights = ops.softmax(scores[:, :, 0])
    return ops.matmul(weights[:, None, :], x)[:, 0, :]

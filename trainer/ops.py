"""Every tensor operation of model and learner; a mode picks the implementation.

Today there is one implementation, eager PyTorch. None of its operations uses floating-point atomics: no gather,
index_add or scatter_add on a gradient path, sums in an order that shapes alone decide. Kernels and a portable
mode come in as further subclasses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trainer import backward

CPU_BLOCK_VALUES = 1 << 17


class Operators:
    """The eager implementation, for modes 0 to 3, on any device that torch runs on."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.swapped_sum = False
        self._ranges: dict[int, Tensor] = {}
        self._masks: dict[int, Tensor] = {}

    def block(self, values_each: int, count: int) -> int:
        """How many of ``count`` sequences, of ``values_each`` values a layer, one pass takes: a function of shapes.

        On a CPU as many as keep a layer's arrays in cache: 32 of 32 x 128 take 55 ms where all 128 took 93. On
        CUDA all.
        """
        if self.device.type != "cpu":
            return count
        return max(1, min(count, CPU_BLOCK_VALUES // values_each))

    # Products and shapes

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Matrix product [..., m, k] x [..., k, n]."""
        return torch.matmul(a, b)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """X [rows, k] x weight [k, n] + bias [n]."""
        return torch.addmm(bias, x, weight)

    def cat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Concatenation."""
        return torch.cat(list(tensors), axis)

    def split(self, x: Tensor, sizes: list[int], axis: int) -> tuple[Tensor, ...]:
        """Parts of ``x`` of the given sizes along ``axis``."""
        return torch.split_with_sizes(x, sizes, axis)

    def sum3(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """(a + b) + c, in this order; the fault ``swapped-sum`` takes a + (b + c)."""
        return a + (b + c) if self.swapped_sum else (a + b) + c

    # Elementwise

    def exp(self, x: Tensor) -> Tensor:
        """e^x."""
        return torch.exp(x)

    def log(self, x: Tensor) -> Tensor:
        """Natural logarithm."""
        return torch.log(x)

    def power(self, x: Tensor, exponent: float | Tensor) -> Tensor:
        """x^exponent for x >= 0."""
        return torch.pow(x, exponent)

    def sqrt(self, x: Tensor) -> Tensor:
        """Square root, correctly rounded."""
        return torch.sqrt(x)

    def tanh(self, x: Tensor) -> Tensor:
        """Hyperbolic tangent."""
        return torch.tanh(x)

    def sigmoid(self, x: Tensor) -> Tensor:
        """1 / (1 + e^-x)."""
        return torch.sigmoid(x)

    def silu(self, x: Tensor) -> Tensor:
        """X sigmoid(x)."""
        return torch.nn.functional.silu(x)

    def elu(self, x: Tensor) -> Tensor:
        """X where positive, else e^x - 1."""
        return torch.nn.functional.elu(x)

    def softplus(self, x: Tensor) -> Tensor:
        """log(1 + e^x)."""
        return torch.nn.functional.softplus(x)

    # Along an axis

    def softmax(self, x: Tensor) -> Tensor:
        """Softmax over the last axis."""
        return torch.softmax(x, -1)

    def log_softmax(self, x: Tensor) -> Tensor:
        """Logarithm of softmax over the last axis."""
        return torch.log_softmax(x, -1)

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Layer norm over the last axis."""
        return _apply(backward.LayerNorm, x, weight, bias)

    def gated_rms_norm(self, x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
        """RMS norm of x silu(gate), all [rows, n]."""
        return _apply(backward.GatedRmsNorm, x, gate, weight)

    def causal_conv_silu(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Depthwise causal convolution over axis 1 of [b, window, channels], then silu."""
        return _apply(backward.CausalConvSilu, x, weight, bias)

    def selective_scan(self, x: Tensor, dt: Tensor, log_decay: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
        """The scan of one window; shapes as in :class:`trainer.backward.SelectiveScan`."""
        return _apply(backward.SelectiveScan, x, dt, log_decay, b, c, d, self._causal_mask(x.shape[1]))

    # Choices and rows: never on a gradient path unless said

    def arange(self, count: int) -> Tensor:
        """int64 0..count-1 on the device, built once."""
        if count not in self._ranges:
            self._ranges[count] = torch.arange(count, dtype=torch.int64, device=self.device)
        return self._ranges[count]

    def one_hot(self, index: Tensor, count: int) -> Tensor:
        """int64 [b] -> float32 [b, count]. Its products replace gather where gradients flow."""
        return (index[:, None] == self.arange(count)).to(torch.float32)

    def argmax(self, x: Tensor) -> Tensor:
        """First index of the largest value along the last axis, int64; ties go to the lowest index."""
        highest = x.amax(-1, keepdim=True)
        count = x.shape[-1]
        return torch.where(x == highest, self.arange(count), count - 1).amin(-1)

    def take(self, table: Tensor, index: Tensor) -> Tensor:
        """Rows ``table[index]``, index int64 [b]; no gradient."""
        return table.index_select(0, index)

    def put_unique(self, table: Tensor, index: Tensor, rows: Tensor) -> None:
        """table[index] = rows, in place. Equal indices must carry equal rows, so that no order matters."""
        table.index_copy_(0, index, rows)

    # The learner's own

    def project_distribution(
        self, probabilities: Tensor, reward: Tensor, discount: Tensor, atoms: Tensor, low: float, high: float
    ) -> Tensor:
        """C51's projection (Bellemare et al. 2017, equation 7), dense.

        ``probabilities`` [b, atoms] of the next state, ``reward`` and ``discount`` [b], ``atoms`` [atoms]
        evenly from ``low`` to ``high``.
        m_i = sum over j of clamp(1 - |T z_j - z_i| / spacing, 0, 1) p_j; no scatter.
        """
        spacing = (high - low) / (atoms.shape[0] - 1)
        moved = (reward[:, None] + discount[:, None] * atoms).clamp_(low, high)
        share = ((moved[:, None, :] - atoms[None, :, None]).abs_().mul_(-1.0 / spacing).add_(1.0)).clamp_(min=0.0)
        return torch.bmm(share, probabilities[:, :, None])[:, :, 0]

    def global_norm(self, flat: Tensor) -> Tensor:
        """Euclidean norm of ``flat``, summed in float64 in one fixed order; 0-d float32."""
        return torch.sqrt((flat * flat).sum(dtype=torch.float64)).to(torch.float32)

    def _causal_mask(self, window: int) -> Tensor:
        if window not in self._masks:
            self._masks[window] = torch.tril(torch.ones(window, window, device=self.device))
        return self._masks[window]


def _apply(function: Any, *arguments: Tensor) -> Tensor:
    result: Tensor = function.apply(*arguments)  # not annotated in torch
    return result


def select(mode: int, device: torch.device) -> Operators:
    """The implementation for ``mode``; modes 0 to 3 share the eager one and differ in the library's settings."""
    if mode not in (0, 1, 2, 3):
        raise ValueError(f"mode {mode} has no operators")
    return Operators(device)

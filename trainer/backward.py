"""Differentiable operators with hand-written backward passes: fewer passes over memory than autograd's chain.

Every gradient of a parameter is a reduction in fixed order; nothing is accumulated by atomics, so these need no
deterministic mode of the library. Each is checked against autograd in float64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

NORM_EPSILON = 1e-5
DEEPEST_DECAY = -60.0


class LayerNorm(torch.autograd.Function):
    """Layer norm over the last axis, out of means and products alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """X [..., n], weight [n], bias [n] -> [..., n]."""
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + NORM_EPSILON)
        normal = centred.mul_(scale)
        ctx.save_for_backward(normal, scale, weight)
        return torch.addcmul(bias, normal, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x, weight and bias."""
        (grad,) = grads
        normal, scale, weight = ctx.saved_tensors
        product = grad * normal
        axes = tuple(range(grad.dim() - 1))
        d_weight, d_bias = product.sum(axes), grad.sum(axes)
        shift = (product.mul_(weight)).mean(-1, keepdim=True)
        inner = grad * weight
        inner = inner.sub_(inner.mean(-1, keepdim=True)).addcmul_(normal, shift, value=-1.0)
        return inner.mul_(scale), d_weight, d_bias


class GatedRmsNorm(torch.autograd.Function):
    """RMS norm of ``x * silu(gate)`` (Mamba-2's norm before the output projection)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
        """X, gate [rows, n], weight [n] -> [rows, n]."""
        opened = torch.nn.functional.silu(gate)
        gated = x * opened
        scale = torch.rsqrt((gated * gated).mean(-1, keepdim=True) + NORM_EPSILON)
        normal = gated.mul_(scale)
        ctx.save_for_backward(x, gate, opened, normal, scale, weight)
        return normal * weight

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x, gate and weight."""
        (grad,) = grads
        x, gate, opened, normal, scale, weight = ctx.saved_tensors
        product = grad * normal
        d_weight = product.sum(0)
        shift = product.mul_(weight).mean(-1, keepdim=True)
        inner = (grad * weight).addcmul_(normal, shift, value=-1.0).mul_(scale)
        d_gate = torch.ops.aten.silu_backward(x * inner, gate)
        return inner.mul_(opened), d_gate, d_weight


class CausalConvSilu(torch.autograd.Function):
    """Depthwise causal convolution along the window as a sum of shifted products, then silu."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """X [b, window, channels], weight [taps, channels] (last tap: the row itself), bias [channels]."""
        taps = weight.shape[0]
        y = torch.addcmul(bias, x, weight[taps - 1])
        for shift in range(1, min(taps, x.shape[1])):
            y[:, shift:].addcmul_(x[:, :-shift], weight[taps - 1 - shift])
        ctx.save_for_backward(x, weight, y)
        return torch.nn.functional.silu(y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x, weight and bias."""
        x, weight, y = ctx.saved_tensors
        taps = weight.shape[0]
        grad = torch.ops.aten.silu_backward(grads[0], y)
        d_x = grad * weight[taps - 1]
        d_taps = [(grad * x).sum((0, 1))]
        for shift in range(1, taps):
            if shift < x.shape[1]:
                d_x[:, :-shift].addcmul_(grad[:, shift:], weight[taps - 1 - shift])
                d_taps.append((grad[:, shift:] * x[:, :-shift]).sum((0, 1)))
            else:
                d_taps.append(torch.zeros_like(d_taps[0]))
        return d_x, torch.stack(d_taps[::-1]), grad.sum((0, 1))


def cumulative_sum(x: Tensor, axis: int) -> Tensor:
    """Inclusive sum along ``axis`` in log-depth shifted additions: torch.cumsum of floats is not exact on CUDA."""
    shift = 1
    length = x.shape[axis]
    while shift < length:
        head = x.narrow(axis, 0, shift)
        x = torch.cat([head, x.narrow(axis, shift, length - shift) + x.narrow(axis, 0, length - shift)], axis)
        shift *= 2
    return x


class SelectiveScan(torch.autograd.Function):
    """State-space duality in its quadratic form over one chunk (Dao and Gu 2024, section 5).

    y_i = sum over j <= i of (C_i . B_j) exp(sum of log_decay over j+1..i) dt_j x_j, plus d x_i.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, dt: Tensor, log_decay: Tensor, b: Tensor, c: Tensor, d: Tensor, mask: Tensor
    ) -> Tensor:
        """X [b, window, heads, head_dim], dt and log_decay [b, window, heads], b and c [b, window, state], d [heads].

        ``mask`` float32 [window, window]: 1 where i >= j, else 0. Returns a tensor shaped like ``x``.
        """
        values = x.transpose(1, 2).contiguous()
        steps = dt.transpose(1, 2).contiguous()
        total = cumulative_sum(log_decay.transpose(1, 2), 2)
        # Floored: e^-60 is nothing beside 1, and below e^-87 a CPU takes 40 times as long for a denormal.
        weights = (total[:, :, :, None] - total[:, :, None, :]).clamp_(DEEPEST_DECAY, 0.0).exp_()
        weights.mul_(mask).mul_(steps[:, :, None, :])
        scores = torch.bmm(c, b.transpose(1, 2))
        mixing = weights * scores[:, None]
        y = torch.matmul(mixing, values)
        ctx.save_for_backward(values, steps, weights, mixing, b, c, d)
        return torch.addcmul(y, values, d[:, None, None]).transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of every input but the mask."""
        values, steps, weights, mixing, b, c, d = ctx.saved_tensors
        grad = grads[0].transpose(1, 2).contiguous()
        d_values = torch.matmul(mixing.transpose(2, 3), grad)
        d_d = (grad * values).sum(3).sum((0, 2))
        d_values.addcmul_(grad, d[:, None, None])
        d_mixing = torch.matmul(grad, values.transpose(2, 3))
        d_scores = (d_mixing * weights).sum(1)
        product = d_mixing.mul_(mixing)
        by_source = product.sum(2)
        d_total = product.sum(3) - by_source
        # d/d log_decay_k: every later cumulative sum holds it, so a sum from the right.
        d_log_decay = cumulative_sum(d_total.flip(2), 2).flip(2).transpose(1, 2)
        # mixing = dt_j * ..., so sum_i d_mixing * mixing / dt_j; dt is a softplus and never 0 where it is normal.
        d_dt = torch.where(steps > 0, by_source / steps, torch.zeros_like(steps)).transpose(1, 2)
        d_b = torch.bmm(d_scores.transpose(1, 2), c)
        d_c = torch.bmm(d_scores, b)
        return d_values.transpose(1, 2), d_dt, d_log_decay, d_b, d_c, d_d, None

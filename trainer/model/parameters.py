"""Parameters: declared in dataflow order, kept in one flat buffer, drawn from counters.

One flat float32 buffer makes the optimiser, the target average and the gradient norm a handful of operations;
each parameter is a view of it, aligned to 64 elements (256 bytes) so that every matrix product sees the same
alignment whatever stands before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.exact.counters import Counters, Purpose

ALIGNMENT = 64


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter.

    ``fan_in`` > 0 draws uniformly from +-sqrt(1 / fan_in) (He et al. 2015, linear gain); otherwise ``values``
    (one, or one an element along the last axis) fill it. ``decay`` says whether AdamW's decay applies.
    """

    name: str
    component: str
    shape: tuple[int, ...]
    fan_in: int = 0
    values: tuple[float, ...] = (0.0,)
    decay: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def gradient_name(self) -> str:
        """Name of its gradient's leaf: ``vsn_w`` -> ``vsn_grad_w``, ``mamba2_l1_w_c`` -> ``mamba2_grad_w_c_l1``."""
        rest = self.name[len(self.component) + 1 :]
        if self.component.startswith("mamba2_"):
            return f"mamba2_grad_{rest}_{self.component[len('mamba2_') :]}"
        return f"{self.component}_grad_{rest}"


class Layout:
    """Where each parameter lies in a flat buffer."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        self.offsets: dict[str, int] = {}
        position = 0
        for parameter in self.parameters:
            self.offsets[parameter.name] = position
            position += -(-parameter.size // ALIGNMENT) * ALIGNMENT
        self.total = position

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Each parameter's part of ``flat`` [total], shaped, by name in dataflow order."""
        return {
            p.name: flat[self.offsets[p.name] : self.offsets[p.name] + p.size].view(p.shape) for p in self.parameters
        }

    def zeros(self, device: torch.device) -> Tensor:
        """A flat float32 buffer of zeros."""
        return torch.zeros(self.total, dtype=torch.float32, device=device)

    def gather(self, tensors: Mapping[str, Tensor], out: Tensor) -> Tensor:
        """Copy ``tensors`` (by parameter name) into the flat buffer ``out``."""
        views = self.views(out)
        torch._foreach_copy_([views[p.name] for p in self.parameters], [tensors[p.name] for p in self.parameters])
        return out

    def decay_mask(self, device: torch.device) -> Tensor:
        """float32 [total]: 1 where weight decay applies."""
        mask = torch.zeros(self.total, dtype=torch.float32)
        for p, view in zip(self.parameters, self.views(mask).values(), strict=True):
            if p.decay:
                view.fill_(1.0)
        return mask.to(device)

    def initialise(self, seed: int, device: torch.device) -> Tensor:
        """The flat buffer at step 0.

        Drawn on the CPU from one counter that runs on through all parameters, with products and sums that are
        exact or rounded once, so a GPU starts from the same bits.
        """
        cpu = torch.device("cpu")
        counters = Counters(seed, cpu)
        keys = counters.keys(torch.zeros((), dtype=torch.int64))
        uniform = counters.uniform(keys, Purpose.PARAMETERS, self.total)
        flat = self.zeros(cpu)
        for p, view in zip(self.parameters, self.views(flat).values(), strict=True):
            if p.fan_in:
                start = self.offsets[p.name]
                draw = uniform[start : start + p.size].view(p.shape)
                view.copy_((draw * 2.0 - 1.0) * math.sqrt(1.0 / p.fan_in))
            else:
                view.copy_(torch.tensor(p.values, dtype=torch.float32))
        return flat.to(device)

"""Counter-based randomness: a draw is a function of (seed, purpose, step, element) and of nothing else.

SplitMix64's finaliser (Steele, Lea, Flood 2014) over a key and an element counter, in torch int64, whose
products wrap modulo 2^64 as unsigned ones do. No generator state: resume, batch history, the number of SMs
and of threads cannot move a draw.
"""

from __future__ import annotations

import enum

import torch
from torch import Tensor


class Purpose(enum.IntEnum):
    """What a draw is for. Numbers are part of the result: append, never renumber."""

    PARAMETERS = 1
    ENV_OFFSET = 2
    ACTION_GUMBEL = 3
    ACTION_EPSILON = 4
    ACTION_UNIFORM = 5
    REPLAY_SAMPLE = 6


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64 [...], elementwise; shifts are logical."""
    z = (z ^ ((z >> 30) & ((1 << 34) - 1))) * _MIX_1
    z = (z ^ ((z >> 27) & ((1 << 37) - 1))) * _MIX_2
    return z ^ ((z >> 31) & ((1 << 33) - 1))


class Counters:
    """All draws of one run.

    The element counters of each length are built once; a draw itself is a dozen elementwise operations on
    the device, with the step read from a device tensor, so it can be captured in a graph.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device
        seed_tensor = torch.tensor(_signed(seed & (2**64 - 1)), dtype=torch.int64, device=device)
        purposes = torch.tensor([int(p) for p in Purpose], dtype=torch.int64, device=device)
        self._stems = mix(mix(seed_tensor + _GOLDEN) + purposes * _GOLDEN)
        self._row = {p: i for i, p in enumerate(Purpose)}
        self._elements: dict[int, Tensor] = {}

    def keys(self, step: Tensor) -> Tensor:
        """int64 [purposes]: the key of each purpose at ``step`` (0-d int64 on the device)."""
        return mix(self._stems + (step + 1) * _GOLDEN)

    def bits(self, keys: Tensor, purpose: Purpose, count: int) -> Tensor:
        """int64 [count]: 64 random bits an element, from the step's ``keys``."""
        elements = self._elements.get(count)
        if elements is None:
            elements = (torch.arange(count, dtype=torch.int64, device=self.device) + 1) * _GOLDEN
            self._elements[count] = elements
        row = self._row[purpose]
        return mix(keys[row : row + 1] + elements)

    def uniform(self, keys: Tensor, purpose: Purpose, count: int) -> Tensor:
        """float32 [count] in [0, 1): the top 24 bits, exact in float32."""
        top = (self.bits(keys, purpose, count) >> 40) & ((1 << 24) - 1)
        return top.to(torch.float32) * (1.0 / (1 << 24))

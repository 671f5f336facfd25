"""Fingerprints of many tensors of fixed shapes at once: the same values as foxrun's, in few operations.

All elements lie behind each other in one int64 buffer, are mixed there, and summed by leaf. Several hundred leaves
one by one would cost more than the step they belong to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foxrun.fingerprint import GOLDEN, MASK, MIX_1, MIX_2, header
from foxrun.tensor_fingerprint import words

# On a CPU the buffer is worked through in pieces: three of 128 KiB stay in a second-level cache.
PIECE = 1 << 14


def _signed(value: int) -> int:
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


class FusedFingerprint:
    """The plan for tensors of given shapes and dtypes, on one device.

    Elements of 4 bytes come first in the buffer, in the order given, then those of other sizes, widened.
    """

    def __init__(self, shapes: Sequence[tuple[tuple[int, ...], torch.dtype]], device: torch.device) -> None:
        sizes = [math.prod(shape) for shape, _ in shapes]
        if 0 in sizes:
            raise ValueError("a leaf of a step has no elements")
        widths = [torch.empty((), dtype=dtype).element_size() for _, dtype in shapes]
        self._narrow = [i for i, width in enumerate(widths) if width == 4]
        self._wide = [i for i, width in enumerate(widths) if width != 4]
        order = self._narrow + self._wide
        self.total = sum(sizes)
        self.device = device
        ends = np.cumsum([sizes[i] for i in order])
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        self._starts = starts
        self._ends_before = torch.tensor(ends, dtype=torch.int64, device=device) - 1
        self._split = sum(sizes[i] for i in self._narrow)
        place = torch.empty(len(order), dtype=torch.int64)
        place[torch.tensor(order, dtype=torch.int64)] = torch.arange(len(order))
        self._place = place.to(device)
        self._headers = torch.tensor(
            [_signed(header(size, width)) for size, width in zip(sizes, widths, strict=True)],
            dtype=torch.int64,
            device=device,
        )
        first = torch.from_numpy(np.repeat(starts, np.diff(np.append(starts, self.total))))
        self._ramp = ((torch.arange(1, self.total + 1) - first) * _signed(GOLDEN)).to(device)
        self._buffer = torch.zeros(self.total, dtype=torch.int64, device=device)
        self._bits = torch.zeros(self._split, dtype=torch.int32, device=device)
        self._spare = torch.zeros(min(PIECE, self.total) if device.type == "cpu" else self.total, dtype=torch.int64)
        self._spare = self._spare.to(device)

    def __call__(self, tensors: Sequence[Tensor]) -> Tensor:
        """int64 [len(tensors)] on the device: the bits of the unsigned fingerprints."""
        if self._narrow:
            torch.cat([words_32(tensors[i]) for i in self._narrow], out=self._bits)
        if self._wide:
            torch.cat([words(tensors[i]).to(torch.int64) for i in self._wide], out=self._buffer[self._split :])
        size = self._spare.shape[0]
        for start in range(0, self.total, size):
            self._mix(start, min(start + size, self.total))
        sums = self._sums().index_select(0, self._place).add_(self._headers)
        return sums.add_(sums == 0)

    def _mix(self, start: int, end: int) -> None:
        z, spare = self._buffer[start:end], self._spare[: end - start]
        narrow = min(end, self._split)
        if start < narrow:
            part = z[: narrow - start]
            part.copy_(self._bits[start:narrow]).bitwise_and_(0xFFFFFFFF)
        z.add_(self._ramp[start:end])
        torch.bitwise_right_shift(z, 30, out=spare)
        z.bitwise_xor_(spare.bitwise_and_((1 << 34) - 1)).mul_(_signed(MIX_1))
        torch.bitwise_right_shift(z, 27, out=spare)
        z.bitwise_xor_(spare.bitwise_and_((1 << 37) - 1)).mul_(_signed(MIX_2))
        torch.bitwise_right_shift(z, 31, out=spare)
        z.bitwise_xor_(spare.bitwise_and_((1 << 33) - 1))

    def _sums(self) -> Tensor:
        if self.device.type == "cpu":
            return torch.from_numpy(np.add.reduceat(self._buffer.numpy(), self._starts))
        # Integers modulo 2^64: a running sum is exact in any order.
        running = torch.cumsum(self._buffer, 0).index_select(0, self._ends_before)
        running[1:] -= running[:-1].clone()
        return running


def words_32(tensor: Tensor) -> Tensor:
    """int32 [n]: stored bits of a tensor of 4-byte elements, in row-major order."""
    return tensor.detach().view(torch.int32).reshape(-1)

"""Fingerprint, version 1, in torch int64: on the tensor's own device, without a host synchronisation.

Two's complement makes int64 sums and products those of uint64; a logical shift is an arithmetic one and a mask. On a
CPU the work goes in pieces that stay in the cache: 13 passes over memory would cost several times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from foxrun.fingerprint import GOLDEN, MASK, MIX_1, MIX_2, header
from foxrun.problems import ContractError

CHUNK = 1 << 14  # elements; two int64 buffers and the ramp are 384 KiB, which fits a core's second-level cache
_UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.int64}


def _signed(value: int) -> int:
    """The int64 with the bits of a uint64."""
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


_MIX_1 = _signed(MIX_1)
_MIX_2 = _signed(MIX_2)


@lru_cache(maxsize=8)
def _ramp(device: torch.device) -> Tensor:
    """(i + 1) * GOLDEN for the elements of one chunk: int64 [CHUNK]."""
    with torch.inference_mode(False):
        return torch.arange(1, CHUNK + 1, dtype=torch.int64, device=device) * _signed(GOLDEN)


def words(tensor: Tensor) -> Tensor:
    """The stored bits of a tensor in row-major order of its logical shape: [n], unsigned, or int64 for 8-byte elements.

    Raises ContractError for tensors without stored bits of their own (meta, sparse, quantised).
    """
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise ContractError(
            f"a tensor of layout {tensor.layout}, dtype {tensor.dtype} on {tensor.device} has no fingerprint",
            remedy="give a dense tensor (to_dense(), dequantize() or int_repr())",
        )
    plain = tensor.detach()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    plain = plain.resolve_neg()
    size = plain.element_size()
    if size not in _UNSIGNED:
        raise ContractError(f"elements of {size} bytes have no fingerprint", remedy="use 1, 2, 4 or 8 bytes")
    is_bool = plain.dtype == torch.bool
    # Seen as integers before any copy: a copy as float might quiet a NaN and lose its payload.
    bits = plain.view(_UNSIGNED[size]).reshape(-1)
    return bits.clamp(max=1) if is_bool else bits


def _mix_(z: Tensor, spare: Tensor) -> None:
    """mix() in place over int64 ``z``; ``spare`` has its shape."""
    torch.bitwise_right_shift(z, 30, out=spare)
    z.bitwise_xor_(spare.bitwise_and_((1 << 34) - 1))
    z.mul_(_MIX_1)
    torch.bitwise_right_shift(z, 27, out=spare)
    z.bitwise_xor_(spare.bitwise_and_((1 << 37) - 1))
    z.mul_(_MIX_2)
    torch.bitwise_right_shift(z, 31, out=spare)
    z.bitwise_xor_(spare.bitwise_and_((1 << 33) - 1))


def _sum_of_mixed(bits: Tensor) -> Tensor:
    """Sum of mix(w_i + (i+1) * GOLDEN), modulo 2^64: 0-d int64."""
    count = bits.numel()
    if bits.device.type != "cpu":
        z = torch.arange(1, count + 1, dtype=torch.int64, device=bits.device)
        z.mul_(_signed(GOLDEN)).add_(bits.to(torch.int64))
        _mix_(z, torch.empty_like(z))
        return z.sum()
    ramp = _ramp(bits.device)
    width = min(count, CHUNK)
    z = torch.empty(width, dtype=torch.int64, device=bits.device)
    spare = torch.empty_like(z)
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for start in range(0, count, CHUNK):
        length = min(CHUNK, count - start)
        if length < width:
            z, spare = z[:length], spare[:length]
        z.copy_(bits[start : start + length])
        z.add_(ramp[:length])
        if start:
            z.add_(_signed(start * GOLDEN))
        _mix_(z, spare)
        total.add_(z.sum())
    return total


@torch.no_grad()
def fingerprint_tensor(tensor: Tensor) -> Tensor:
    """Fingerprint of one tensor: 0-d int64 on its device, with the bits of the unsigned value; never 0."""
    bits = words(tensor)
    total = _sum_of_mixed(bits).add_(_signed(header(bits.numel(), bits.element_size())))
    return total.add_(total == 0)


@torch.no_grad()
def fingerprint_many(tensors: Sequence[Tensor]) -> Tensor:
    """Fingerprints of several tensors of one device: int64 [len(tensors)] there, in their order.

    Small tensors are joined and mixed together: 711 leaves one by one cost 25 launches each. What depends on the sizes
    alone is kept, so call it once before a CUDA graph is captured.
    """
    if not tensors:
        return torch.empty(0, dtype=torch.int64)
    bits = [words(tensor) for tensor in tensors]
    device = bits[0].device
    if any(one.device != device for one in bits):
        raise ContractError("the tensors are on several devices", remedy="call once for each device")
    plan = _plan(tuple((one.numel(), one.element_size()) for one in bits), device)
    result = torch.empty(len(bits), dtype=torch.int64, device=device)
    for index in plan.alone:
        one = bits[index]
        torch.add(_sum_of_mixed(one), _signed(header(one.numel(), one.element_size())), out=result[index])
    for batch in plan.batches:
        z = torch.cat([bits[index] for index in batch.members]).to(torch.int64)
        z.add_(batch.ramp)
        _mix_(z, torch.empty_like(z))
        running = torch.cumsum(z, 0)  # wraps, and so do the differences: exact
        sums = torch.nn.functional.pad(running, (1, 0))[batch.bounds].diff()
        result.index_copy_(0, batch.places, sums.add_(batch.headers))
    return result.add_(result == 0)


class _Batch(NamedTuple):
    """Small tensors of one element size that are mixed together."""

    members: list[int]
    places: Tensor  # members, int64 [k]
    ramp: Tensor  # (i + 1) * GOLDEN, from the start for each member: int64 [elements of all]
    bounds: Tensor  # where each member begins, and the last ends: int64 [k + 1]
    headers: Tensor  # int64 [k]


class _Plan(NamedTuple):
    alone: list[int]
    batches: list[_Batch]


@lru_cache(maxsize=16)
def _plan(sizes: tuple[tuple[int, int], ...], device: torch.device) -> _Plan:
    """Who is mixed with whom; ``sizes``: (elements, bytes per element) of each tensor."""
    small, room = (CHUNK // 4, 4 * CHUNK) if device.type == "cpu" else (1 << 16, 1 << 22)
    alone = [index for index, (count, _) in enumerate(sizes) if count > small]
    groups: list[list[int]] = []
    for itemsize in sorted({size for _, size in sizes}):
        filled = room + 1  # the first one opens a group
        for index, (count, size) in enumerate(sizes):
            if size != itemsize or count > small:
                continue
            if filled + count > room:
                groups.append([])
                filled = 0
            groups[-1].append(index)
            filled += count
    with torch.inference_mode(False):
        return _Plan(alone, [_batch(group, sizes, device) for group in groups])


def _batch(members: list[int], sizes: tuple[tuple[int, int], ...], device: torch.device) -> _Batch:
    counts = [sizes[index][0] for index in members]
    golden = _signed(GOLDEN)
    ramp = torch.cat([torch.arange(1, count + 1, dtype=torch.int64, device="cpu") for count in counts]).mul_(golden)
    headers = [_signed(header(*sizes[index])) for index in members]

    def there(values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device="cpu").to(device)

    return _Batch(members, there(members), ramp.to(device), there([0, *accumulate(counts)]), there(headers))

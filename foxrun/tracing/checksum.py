"""The checksum of a CPU tensor's bits, read from its memory as it is now.

Small tensors go through SHA-1, for which processors have instructions. Of large ones blocks go through two products
with fixed odd keys modulo 2^64 first (a multilinear hash: Carter and Wegman, "Universal classes of hash functions",
1979), which torch computes three to six times as fast, and SHA-1 takes these products. The second one reads the block
four bytes further on: what changes only the high bits of a word, as signs and exponents do, changes low ones there. It
is a checksum cut to 64 bits, and no protection against somebody who means to deceive it.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import lru_cache

import torch
from torch import Tensor

from foxrun.fingerprint import GOLDEN, MASK, mix
from foxrun.tensor_fingerprint import _signed, words

_ADDRESS = torch._C.TensorBase.data_ptr  # not the one that is watched: the program asked for no address here
_FROM_MEMORY = torch.frombuffer  # likewise
BLOCK = 2048  # words of 8 bytes
LARGE = 1 << 16  # bytes
_SHIFT = 4  # bytes


def on_host(tensor: Tensor) -> int:
    """Checksum of a CPU tensor's bits, their number and their size: 1..2^64-1."""
    plain = tensor.is_contiguous() and not (tensor.is_complex() or tensor.is_neg() or tensor.dtype is torch.bool)
    bits = tensor if plain else words(tensor).contiguous()
    size = bits.element_size()
    checksum = hashlib.sha1(b"%d %d " % (bits.numel(), size), usedforsecurity=False)
    if length := bits.numel() * size:
        memory = (ctypes.c_char * length).from_address(_ADDRESS(bits))
        blocks = (length - _SHIFT) // (8 * BLOCK) if length >= LARGE else 0
        for product in _products(memory, blocks) if blocks else ():
            checksum.update((ctypes.c_char * (8 * blocks)).from_address(_ADDRESS(product)))
        checksum.update(memoryview(memory)[8 * BLOCK * blocks :])
    return _number(checksum.digest())


def has_memory(tensor: Tensor) -> bool:
    """Whether all of a strided tensor's elements can be read: storage may be none, or resized to nothing."""
    if not tensor.numel():
        return True
    try:
        size = tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError):
        return False  # a wrapper's: it holds other tensors
    item = tensor.element_size()
    last = tensor.storage_offset() + tensor.numel()
    if size < last * item or not tensor.is_contiguous():
        last = (
            tensor.storage_offset() + 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        )
    return size >= last * item and _ADDRESS(tensor) != 0


def of_nothing(tensor: Tensor) -> int:
    """The checksum of a tensor without memory."""
    checksum = hashlib.sha1(b"none %d %d" % (tensor.numel(), tensor.element_size()), usedforsecurity=False)
    return _number(checksum.digest())


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "little") or 1


def _products(memory: ctypes.Array[ctypes.c_char], blocks: int) -> list[Tensor]:
    """Of each block with the keys: int64 [blocks], and the same of memory that begins four bytes later. Sums of whole
    numbers are the same in any order."""
    read = [
        _FROM_MEMORY(memory, dtype=torch.int64, count=blocks * BLOCK, offset=offset).view(blocks, BLOCK)
        for offset in (0, _SHIFT)
    ]
    with torch._C._DisableFuncTorch():  # within torch.func.grad a product would be one of its wrappers
        return [torch.mv(part, keys) for part, keys in zip(read, _keys(), strict=True)]


@lru_cache(maxsize=1)
def _keys() -> tuple[Tensor, Tensor]:
    """Odd numbers without a pattern: int64 [BLOCK] each. An odd factor lets no change of one word vanish."""
    numbers = [_signed(mix(i * GOLDEN & MASK) | 1) for i in range(1, 2 * BLOCK + 1)]
    with torch.inference_mode(False):
        keys = torch.tensor(numbers, dtype=torch.int64, device="cpu")
        return keys[:BLOCK], keys[BLOCK:]

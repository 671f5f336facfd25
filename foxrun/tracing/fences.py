"""What lies behind the tensors that a Triton kernel is handed: a store without a mask writes there.

Two pieces: the rest of the storage behind a view, which is held against what it was, and the bytes by which CUDA's
caching allocator rounds a block up, which are nobody's and are filled for the time of the launch. Both are read and
written in the launch's own stream, so nothing waits for the device but the answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foxrun.tracing.shapes import shape_of
from foxrun.tracing.words import PAST_VIEW, SURELY

MOST = 1 << 16  # bytes behind one tensor
ROUND = 512  # https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management: blocks are multiples of it
FILL = 0xFB


class Fence(NamedTuple):
    """``memory``: flat bytes behind a tensor; ``wanted``: what is there unless the kernel writes; ``before``: to be put
    back, None where it is only looked at."""

    shape: str
    memory: Tensor
    wanted: Tensor
    before: Tensor | None


def put(given: list[tuple[str, Tensor]]) -> list[Fence]:
    """Fences behind the tensors of a launch; none of them in memory that another argument covers."""
    spans = [_span(tensor) for _, tensor in given if _plain(tensor)]
    fences = []
    for _, tensor in given:
        if not _plain(tensor):
            continue
        start, end = _span(tensor)
        storage = tensor.untyped_storage()
        last = storage.data_ptr() + storage.nbytes()
        behind = min(last, end + MOST)
        if behind > end and not any(end < e and s < behind for s, e in spans if (s, e) != (start, end)):
            flat = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            rest = flat[end - storage.data_ptr() : behind - storage.data_ptr()]
            fences.append(Fence(shape_of(tensor), rest, rest.clone(), None))
        elif behind <= end and (slack := _slack(storage, tensor.device)) is not None:
            fences.append(Fence(shape_of(tensor), slack, torch.full_like(slack, FILL), slack.clone()))
            slack.fill_(FILL)
    return fences


def look(fences: list[Fence]) -> Callable[[], str] | str:
    """What the kernel wrote behind its tensors, to be asked when fingerprints are read: nothing waits for the device
    here. Fills are taken back."""
    counts = []
    for fence in reversed(fences):
        counts.append((fence, (fence.memory != fence.wanted).sum()))
        if fence.before is not None:
            fence.memory.copy_(fence.before)
    return functools.partial(_told, counts) if counts else ""


def _told(counts: list[tuple[Fence, Tensor]]) -> str:
    found = ""
    for fence, changed in counts:
        if count := int(changed):
            words = "which are nobody's" if fence.before is not None else "in the storage that it is a view of"
            kind = SURELY if fence.before is not None else PAST_VIEW
            found = f"{kind}: {count} bytes behind {fence.shape}, {words}"
    return found


def _plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.numel() > 0 and tensor.device.type in ("cpu", "cuda")


def _span(tensor: Tensor) -> tuple[int, int]:
    """Addresses of a tensor's first byte and of the one behind its last."""
    last = sum((count - 1) * stride for count, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (last + 1) * tensor.element_size()


class _Bytes:
    """Memory of a CUDA device, for torch.as_tensor."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


def _slack(storage: Any, device: torch.device) -> Tensor | None:
    """The bytes between a storage's end and its block's; None where the caching allocator did not make it."""
    address, count = storage.data_ptr(), -storage.nbytes() % ROUND
    if device.type != "cuda" or not count or not storage.resizable() or address % ROUND:
        return None
    if torch.cuda.get_allocator_backend() != "native" or torch.cuda.is_current_stream_capturing():
        return None
    return torch.as_tensor(_Bytes(address + storage.nbytes(), count), device=device)

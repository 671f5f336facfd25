"""Which event wrote a tensor's memory last, by the identity of its storage.

A weak reference to each storage keeps its identity from being used again, and no memory of the program's alive.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

OUTSIDE = -1
SWEEP = 4096  # storages known before those that are gone are forgotten


class Storages:
    """Last writers of all storages that were seen."""

    def __init__(self) -> None:
        self._writers: dict[int, int] = {}
        self._unset: dict[int, tuple[int, int, int]] = {}  # made unfilled: by which event, bytes, bytes written since
        self._limit = SWEEP

    def source(self, tensor: Tensor) -> int:
        """The event that wrote this tensor's storage last, or -1."""
        return self._writers.get(_key(tensor), OUTSIDE)

    def wrote(self, tensor: Tensor, event: int) -> None:
        """``event`` has written (some of) this tensor's storage."""
        if not (key := self._know(tensor)):
            return
        self._writers[key] = event
        unset = self._unset.get(key)
        if unset is not None:
            made, size, done = unset
            done += tensor.numel() * tensor.element_size()
            if done >= size:
                del self._unset[key]
            else:
                self._unset[key] = (made, size, done)

    def made_unfilled(self, tensor: Tensor, event: int) -> None:
        """``event`` made this storage and wrote nothing into it."""
        if not (key := self._know(tensor)):
            return
        self._writers[key] = event
        self._unset[key] = (event, tensor.numel() * tensor.element_size(), 0)

    def made(self, tensor: Tensor, event: int) -> None:
        """``event`` made this storage, whole."""
        if not (key := self._know(tensor)):
            return
        self._writers[key] = event
        self._unset.pop(key, None)

    def unfilled(self, tensor: Tensor) -> str:
        """What is known of bytes that nobody has written: ``uninitialised: event 12, 24 of 64 bytes``, or empty."""
        unset = self._unset.get(_key(tensor)) if self._unset else None
        if unset is None or not tensor.numel():
            return ""
        made, size, done = unset
        return f"uninitialised: event {made}, {size - done} of {size} bytes"

    def _know(self, tensor: Tensor) -> int:
        key = _key(tensor)
        if key and key not in self._writers:
            storage: Any = tensor.untyped_storage()
            storage._weak_ref()
            if len(self._writers) >= self._limit:
                self._sweep()
        return key

    def _sweep(self) -> None:
        storages: Any = torch.UntypedStorage
        for key in [key for key in self._writers.copy() if storages._expired(key)]:  # other threads make storages too
            if self._writers.pop(key, None) is not None:
                self._unset.pop(key, None)
                storages._free_weak_ref(key)
        self._limit = max(SWEEP, 2 * len(self._writers))


def _key(tensor: Tensor) -> int:
    """The identity of its storage; 0 of what has none: sparse tensors."""
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else 0

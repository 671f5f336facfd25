"""Guard bytes behind the memory that a native function is handed: who writes there writes past its end.

malloc gives blocks of a few sizes, so behind what was asked for lie bytes that are nobody's (malloc_usable_size(3)).
They are filled for the time of one call and put back: a write past the end is seen though it damages nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foxrun.tracing import handed

MOST = 4096  # bytes behind one piece of memory
REST = 256  # bytes behind a view
PLAIN_FILL = 0xFB  # a large negative number as float32, float64 or int: what clips, adds or scales changes it


class Guard(NamedTuple):
    """Bytes from ``address`` on, filled with ``filled``, and what was there."""

    address: int
    before: bytes
    filled: bytes


class Guards:
    """Plants and looks. Without malloc_usable_size, as outside of glibc and musl, it plants nothing."""

    def __init__(self, ctypes: ModuleType) -> None:
        self._read, self._write = ctypes.string_at, ctypes.memmove
        self._lock = threading.Lock()
        self._planted: dict[int, tuple[Guard, int]] = {}  # by address, and for how many calls
        os.register_at_fork(after_in_child=self._forked)
        try:
            self._usable = ctypes.CDLL(None).malloc_usable_size
        except (AttributeError, OSError):
            self._usable = None
            return
        self._usable.argtypes, self._usable.restype = [ctypes.c_void_p], ctypes.c_size_t

    def plant(self, owner: Any) -> Guard | None:
        """Fill what lies behind the memory of a tensor or an array; None where malloc did not make it."""
        base, size = _allocated(owner)
        if self._usable is None or not base:
            return None
        count = min(int(self._usable(base)) - size, MOST)
        if count <= 0:
            return None
        with self._lock:  # calls of several threads may be handed the same memory: the last one takes the fill back
            guard, calls = self._planted.get(base + size, (None, 0))
            if guard is None or len(guard.filled) != count:
                guard, calls = Guard(base + size, self._read(base + size, count), bytes([_fill()]) * count), 0
                self._write(guard.address, guard.filled, count)
            self._planted[guard.address] = guard, calls + 1
        return guard

    def _forked(self) -> None:
        self._lock, self._planted = threading.Lock(), {}

    def behind(self, owner: Any) -> int:
        """How many bytes behind the memory of a tensor or an array are nobody's."""
        base, size = _allocated(owner)
        return max(0, int(self._usable(base)) - size) if self._usable is not None and base else 0

    def rest(self, address: int, end: int) -> bytes:
        """What lies behind a view, in the memory that it is a view of."""
        return bytes(self._read(address, min(end - address, REST))) if end > address else b""

    def look(self, guard: Guard) -> int:
        """How many bytes behind the end were written; what was there before is there again after the last call."""
        with self._lock:
            now = self._read(guard.address, len(guard.filled))
            calls = self._planted.get(guard.address, (guard, 1))[1] - 1
            if calls > 0:
                self._planted[guard.address] = guard, calls
            else:
                self._planted.pop(guard.address, None)
                self._write(guard.address, guard.before, len(guard.before))
        return sum(a != b for a, b in zip(now, guard.filled, strict=True)) if now != guard.filled else 0


def _fill() -> int:
    """Twins whose fresh memory holds other bytes get other guards too: so a read past the end parts them."""
    text = os.environ.get("MALLOC_PERTURB_", "")
    return 0xF0 | (int(text) & 0x0E) if text.isascii() and text.isdigit() else PLAIN_FILL


def _allocated(owner: Any) -> tuple[int, int]:
    """(address, bytes) of the block of malloc's that a tensor or an array lies in; (0, 0) where it may be another's."""
    if isinstance(owner, Tensor):
        storage = owner.untyped_storage()
        address = int(storage.data_ptr())
        if not storage.resizable():  # what was mapped, shared or handed over by numpy
            array = handed.owner_at(address)
            return _of_array(array) if array is not None else (0, 0)
        used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        if storage.is_shared() or (used and owner.is_pinned()):
            return 0, 0
        return address, int(storage.nbytes())
    while isinstance(getattr(owner, "base", None), type(owner)):
        owner = owner.base
    return _of_array(owner)


def _of_array(array: Any) -> tuple[int, int]:
    np: Any = sys.modules["numpy"]  # an array is there, so it is too
    multiarray: Any = np._core.multiarray
    plain = type(array) is np.ndarray and array.base is None and array.flags.owndata and array.nbytes > 0
    if not plain or multiarray.get_handler_name(array) != "default_allocator":
        return 0, 0
    return int(array.__array_interface__["data"][0]), int(array.nbytes)

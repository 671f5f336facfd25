"""Fingerprints of many tensors, taken at once and read later: no host synchronisation between two reads.

A small tensor's bits are copied into an arena and mixed together with others; a large one is mixed where it is. Both
happen on the tensor's device and current stream, so what is hashed is what the program's next operation would see.
Where no device but the CPU is there, it is done at once (checksum.py).
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache

import torch
from torch import Tensor

from foxrun.fingerprint import GOLDEN, MASK, header
from foxrun.tensor_fingerprint import _mix_, _signed, fingerprint_tensor, words
from foxrun.tracing.checksum import has_memory, of_nothing, on_host

SMALL = 4096  # elements
ROOM = 1 << 16


class Hasher:
    """Hands out a slot for each tensor, ever higher numbers; ``resolve`` reads the fingerprints of all that wait."""

    def __init__(self) -> None:
        self._next = 0
        self._waiting = 0
        self._lock = threading.Lock()
        # For each device and stream: on two streams nothing says which of two copies into one arena comes first.
        self._arenas: dict[tuple[torch.device, int], _Arena] = {}
        self._large: dict[tuple[torch.device, int], tuple[list[int], list[Tensor]]] = {}
        self._on_host: dict[int, int] = {}
        self.kept: dict[int, int] = {}  # read already, and not yet used by whoever asked for them

    def __len__(self) -> int:
        return self._waiting

    def add(self, tensor: Tensor) -> int:
        """The slot in which this tensor's fingerprint will be; call it with dispatch modes and autograd off.

        A tensor whose memory is not there (a zero that forward-mode autograd made up, a parameter that is kept
        elsewhere meanwhile, a wrapper) has that of its number and size of elements alone.
        """
        tensor = unwrapped(tensor)
        nothing = not has_memory(tensor)
        if nothing or _cpu_alone():
            known = of_nothing(tensor) if nothing else on_host(tensor)
            with self._lock:
                slot = self._next
                self._on_host[slot] = known
                self._next += 1
                self._waiting += 1
            return slot
        bits = words(tensor)
        small = bits.numel() <= SMALL
        value = None if small else fingerprint_tensor(bits).reshape(1)
        queue = bits.device, _stream(bits.device)
        with self._lock:
            slot = self._next
            if value is None:
                arena = self._arenas.get(queue)
                if arena is None:
                    arena = self._arenas[queue] = _Arena(bits.device)
                arena.put(slot, bits)
            else:
                slots, values = self._large.setdefault(queue, ([], []))
                slots.append(slot)
                values.append(value)
                if len(values) >= 512:
                    values[:] = [torch.cat(values)]
            self._next += 1
            self._waiting += 1
        return slot

    def resolve(self) -> dict[int, int]:
        """Fingerprints of all slots that were handed out since the last call, 1..2^64-1. Waits for the device."""
        found: dict[int, int] = {}
        with self._lock:
            for (device, _), (slots, values) in self._large.items():
                _wait_for(device)
                found.update(zip(slots, torch.cat(values).tolist(), strict=True))
            for (device, _), arena in self._arenas.items():
                _wait_for(device)
                found.update(arena.take())
            self._large.clear()
            found.update(self._on_host)
            self._on_host = {}
            self._waiting = 0
        return {slot: value & MASK for slot, value in found.items()}


class _Arena:
    """Bits of small tensors of one device, one after another."""

    def __init__(self, device: torch.device) -> None:
        self._room = torch.empty(ROOM, dtype=torch.int64, device=device)
        self._golden = _signed(GOLDEN)
        self._fill = 0
        self._slots: list[int] = []
        self._sizes: list[tuple[int, int]] = []
        self._done: list[tuple[list[int], Tensor]] = []

    def put(self, slot: int, bits: Tensor) -> None:
        count = bits.numel()
        if self._fill + count > ROOM:
            self._mix()
        if count:
            self._room[self._fill : self._fill + count].copy_(bits)
            self._fill += count
        self._slots.append(slot)
        self._sizes.append((count, bits.element_size()))

    def _mix(self) -> None:
        if not self._slots:
            return
        device = self._room.device
        host = torch.tensor(
            [[count for count, _ in self._sizes], [_signed(header(*size)) for size in self._sizes]],
            dtype=torch.int64,
            device="cpu",
        )
        counts, headers = host.to(device)
        bounds = torch.nn.functional.pad(torch.cumsum(counts, 0), (1, 0))
        z = self._room[: self._fill].clone()
        if self._fill:
            place = torch.arange(1, self._fill + 1, dtype=torch.int64, device=device)
            place.sub_(torch.repeat_interleave(bounds[:-1], counts, output_size=self._fill))
            z.add_(place.mul_(self._golden))
            _mix_(z, place)
        running = torch.nn.functional.pad(torch.cumsum(z, 0), (1, 0))  # wraps, and so do the differences: exact
        result = running[bounds].diff().add_(headers)
        result.add_(result == 0)
        self._done.append((self._slots, result))
        self._slots, self._sizes, self._fill = [], [], 0

    def take(self) -> list[tuple[int, int]]:
        self._mix()
        done, self._done = self._done, []
        return [pair for slots, values in done for pair in zip(slots, values.tolist(), strict=True)]


@lru_cache(maxsize=1)
def _cpu_alone() -> bool:
    """Whether no tensor can lie on a GPU, whose fingerprint must be that of its copy on the host."""
    if torch.version.cuda is None and torch.version.hip is None:
        return not torch.backends.mps.is_built()
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return True
    count = torch.cuda._device_count_nvml()  # asks no driver, so that a forked child may still use a GPU
    return int(count) == 0


def unwrapped(tensor: Tensor) -> Tensor:
    """What torch.func's transforms wrap: all of a batch, the value of a dual number."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


def _stream(device: torch.device) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream) if device.type == "cuda" else 0


def _wait_for(device: torch.device) -> None:
    """Slots may have been filled on several streams; reading them is the one place that waits."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)

"""Poisoned memory: what was never written reads as a byte of the gate's choice, so a read of it shows.

On the CPU the gate sets MALLOC_PERTURB_; on CUDA this fills the caching allocator and gives the memory back to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from trainer.errors import UsageError

# Small blocks (below 1 MiB) and large ones come from separate pools of the caching allocator.
SMALL_BYTES, SMALL_COUNT = 256 << 10, 256
LARGE_BYTES, LARGE_COUNT = 64 << 20, 16


def poison_byte(environment: Mapping[str, str]) -> int | None:
    """FOXRUN_POISON as a byte, None where it is not set."""
    text = environment.get("FOXRUN_POISON", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise UsageError(f"FOXRUN_POISON={text[:40]!r} is not a byte; take 0 to 255")
    return int(text)


def poison(byte: int | None, device: torch.device) -> None:
    """Fill the CUDA caching allocator with ``byte`` and free it; nothing to do on a CPU."""
    if byte is None or device.type != "cuda":
        return
    held = []
    free, _ = torch.cuda.mem_get_info(device)
    for size, count in ((LARGE_BYTES, min(LARGE_COUNT, free // (4 * LARGE_BYTES))), (SMALL_BYTES, SMALL_COUNT)):
        held += [torch.full((size,), byte, dtype=torch.uint8, device=device) for _ in range(count)]
    torch.cuda.synchronize(device)
    held.clear()

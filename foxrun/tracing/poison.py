"""Poisoned memory on a GPU: what was never written reads as a byte of the twin's own, so a read of it parts twins.

On the CPU glibc does it (MALLOC_PERTURB_). Here the caching allocator is filled, and given its memory back, when the
program starts CUDA.
"""

from __future__ import annotations

import os
from typing import Any

from foxrun.tracing.recorder import Recorder

# Small blocks (below 1 MiB) and large ones come from separate pools of the caching allocator.
SMALL_BYTES, SMALL_COUNT = 256 << 10, 128
LARGE_BYTES, LARGE_COUNT = 64 << 20, 8


def when_cuda_starts(torch: Any, recorder: Recorder) -> None:
    """Poison once the program makes its first use of CUDA, where FOXRUN_POISON names a byte."""
    text = os.environ.get("FOXRUN_POISON", "")
    if torch.version.cuda is not None and text.isascii() and text.isdigit() and int(text) <= 255:

        def start() -> None:
            with recorder.quiet():  # it is no doing of the program's
                _poison(torch, int(text))

        torch.cuda._lazy_call(start)


def _poison(torch: Any, byte: int) -> None:
    free, _ = torch.cuda.mem_get_info()
    held = []
    for size, count in ((LARGE_BYTES, min(LARGE_COUNT, free // (4 * LARGE_BYTES))), (SMALL_BYTES, SMALL_COUNT)):
        held += [torch.full((size,), byte, dtype=torch.uint8, device="cuda") for _ in range(count)]
    torch.cuda.synchronize()
    held.clear()

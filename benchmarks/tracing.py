"""python -m benchmarks.tracing: what a traced step costs, as a ratio to the plain step.

CPU time of the process, so that a busy machine does not decide; the best of three runs of each. Beside it, on the same
program, torch's own DebugMode with hashes of every operation's inputs and outputs (torch.utils._debug_mode).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import foxrun

SITE = Path(foxrun.__file__).parent / "tracing" / "site"
PROGRAM = """
import contextlib, sys, time, torch
from torch import nn
width, depth, batch, steps = (int(word) for word in sys.argv[1:5])

@contextlib.contextmanager
def looked_at():
    if sys.argv[5] != "debug-mode":
        yield
        return
    from torch.utils._debug_mode import DebugMode
    with DebugMode() as mode, mode.log_tensor_hashes(hash_inputs=True):
        yield

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(*(f for _ in range(depth) for f in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
x = torch.randn(batch, width)
for step in range(steps + 3):
    if step == 3:
        start = time.process_time()
    with looked_at():
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print((time.process_time() - start) / steps)
"""
SIZES = ((64, 4, 64, 30), (512, 4, 128, 10))


def seconds(level: str, words: tuple[int, ...], folder: Path) -> float:
    """CPU seconds of a step. ``level``: plain, steps, operations, or debug-mode."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    if level in ("steps", "operations"):
        (folder / "plan.json").write_text(json.dumps({"out": str(folder / "out"), "level": level}))
        env |= {"FOXRUN_TRACE": str(folder / "plan.json"), "PYTHONPATH": str(SITE)}
    command = [sys.executable, "-c", PROGRAM, *map(str, words), level]
    return float(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print a line for each size."""
    with tempfile.TemporaryDirectory() as name:
        for words in SIZES:
            best = {
                level: min(seconds(level, words, Path(name)) for _ in range(3))
                for level in ("plain", "steps", "operations", "debug-mode")
            }
            width, depth, batch, _ = words
            print(
                f"width {width}, {depth} blocks, batch {batch}: plain {best['plain'] * 1e3:.2f} ms a step, "
                f"steps x{best['steps'] / best['plain']:.2f}, operations x{best['operations'] / best['plain']:.1f}, "
                f"torch's DebugMode with hashes x{best['debug-mode'] / best['plain']:.1f}"
            )


if __name__ == "__main__":
    main()

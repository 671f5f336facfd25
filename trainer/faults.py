"""Faults to inject, for tests and demonstration: ``-p fault=NAME[@leg][:step]``, active from that step on.

The leg's name comes from FOXRUN_LEG, outside the config hash; without ``@leg`` every leg has the fault.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

FAULTS = {
    "unseeded-sampler": "the replay samples by a generator that nobody seeded",
    "time-seed": "the replay samples by a generator seeded with the second of the clock",
    "set-order": "the batch comes in the order in which a set of strings is iterated (PYTHONHASHSEED)",
    "listdir-order": "the batch comes in the order in which a directory lists its shards",
    "unset-memory": "priorities are scaled by memory that was never written",
    "ulp": "one weight (vsn_w, first element) moves to the next float before the step; once",
    "swapped-sum": "a sum of three floats in the CfC cell is taken as a + (b + c)",
    "crash": "an exception before the step",
    "hang": "the step never ends",
    "exit-137": "the process ends with exit code 137 before the step, as if it had been killed",
    "no-summary": "the run ends well, without eval_summary.json",
    "empty-summary": "the run ends well, with an empty eval_summary.json",
    "cut-summary": "eval_summary.json is cut in the middle, then exit code 137",
    "nan": "a NaN in the rewards of the learning batch; once",
}
LEGS = ("a", "b", "c", "twin1", "twin2")
_PATTERN = re.compile(r"(?P<name>[^@:]+)(?:@(?P<leg>[^@:]*))?(?::(?P<step>[0-9]{1,12}))?\Z", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault, already resolved to this leg; ``name`` is empty where it does not apply here."""

    name: str = ""
    step: int = 0
    out: Path = Path()

    def active(self, name: str, step: int) -> bool:
        """Whether ``name`` acts at ``step``: from its step on."""
        return self.name == name and step >= self.step

    def at(self, name: str, step: int) -> bool:
        """Whether ``name`` acts at ``step`` alone."""
        return self.name == name and step == self.step


def parse(text: str, *, leg: str, out: Path) -> Fault:
    """The fault of this leg; UsageError names what is known."""
    if not text:
        return Fault()
    match = _PATTERN.match(text)
    name = match["name"] if match else text
    if match is None or name not in FAULTS:
        raise UsageError(f"fault {name[:60]!r} is not known: NAME[@leg][:step] with NAME one of {', '.join(FAULTS)}")
    if match["leg"] is not None and match["leg"] not in LEGS:
        raise UsageError(f"fault {text[:60]!r}: leg {match['leg']!r} is not one of {', '.join(LEGS)}")
    if match["leg"] is not None and match["leg"] != leg:
        return Fault()
    return Fault(name=name, step=int(match["step"] or 0), out=out)


def before_step(fault: Fault, step: int) -> None:
    """Faults that end or stop the process."""
    if fault.at("crash", step):
        raise RuntimeError(f"injected fault: crash at step {step}")
    if fault.at("exit-137", step):
        sys.stderr.flush()
        os._exit(137)
    if fault.at("hang", step):
        sys.stderr.write(f"injected fault: hang at step {step}\n")
        sys.stderr.flush()
        while True:
            time.sleep(60.0)


def sample_uniform(fault: Fault, step: int, uniform: Tensor) -> Tensor:
    """The sampler's draws [b], or those of a generator that is not a function of the seed."""
    import torch  # here, so that a malformed fault is refused before the second that this takes

    if fault.active("unseeded-sampler", step):
        generator = torch.Generator()
        generator.seed()
    elif fault.active("time-seed", step):
        generator = torch.Generator()
        generator.manual_seed(int(time.time()) + step)
    else:
        return uniform
    return torch.rand(uniform.shape[0], generator=generator).to(uniform.device)


def batch_order(fault: Fault, step: int, count: int) -> list[int] | None:
    """An order of the batch that something outside the seed decides; None for the order as sampled."""
    if fault.active("set-order", step):
        return [int(name.rpartition("-")[2]) for name in {f"transition-{i}" for i in range(count)}]
    if fault.active("listdir-order", step):
        return _listed_order(fault.out, count)
    return None


def _listed_order(out: Path, count: int) -> list[int]:
    # Shards as concurrent writers leave them: unique names, created in an order that nobody fixed. What a
    # directory lists then depends on the file system: by hash of the name, or by creation.
    remaining = list(range(count))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".shards-", dir=out) as folder:
        while remaining:
            index = remaining.pop(int.from_bytes(os.urandom(4), "little") % len(remaining))
            handle, _ = tempfile.mkstemp(prefix=f"shard-{index}-", dir=folder)
            os.close(handle)
        return [int(name.split("-")[1]) for name in os.listdir(folder)]  # noqa: PTH208 the order as it comes


def unset_scale(fault: Fault, step: int, priorities: Tensor) -> Tensor:
    """Priorities [b] times 1 to 2 by the bits of memory that was never written."""
    if not fault.active("unset-memory", step):
        return priorities
    import torch

    # All of a large block counts: on CUDA the allocator may hand out one that was partly written in between.
    rows = priorities.shape[0]
    size = 1 << (23 if priorities.device.type == "cuda" else 20)
    unset = torch.empty(rows, max(1, size // rows), dtype=torch.int32, device=priorities.device)
    return priorities * (1.0 + ((unset & 255).sum(1) % 251).to(torch.float32) / 251.0)

"""Remedies that can be switched on before a program's first line, and what each is in code.

A switch survives the program's own later calls where the remedy is meant to hold. ``hides``: it may make runs equal
without removing the cause. docs/causes.md and docs/tracing.md are made of this table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foxrun.problems import ContractError
from foxrun.tracing import switch_host, switch_seeds, switch_torch


@dataclass(frozen=True, kw_only=True)
class Switch:
    """One remedy. ``code`` is what a user writes to have it for good."""

    does: str
    code: str
    hides: bool
    apply: Callable[[], None]


SWITCHES: dict[str, Switch] = {
    "hash-seed": Switch(
        does="starts the interpreter again with PYTHONHASHSEED=0, so that sets and hash() of strings have one order",
        code="PYTHONHASHSEED=0 python ...   # or sort: for name in sorted(names)",
        hides=False,
        apply=switch_host.hash_seed,
    ),
    "fixed-addresses": Switch(
        does="memory lies at the same addresses in each process, so that sets of objects and id() have one order",
        code="none: a probe. Keep objects in a list or a dict, and sort by a name, not by id() or hash() of an object",
        hides=True,
        apply=switch_host.fixed_addresses,
    ),
    "seed-generators": Switch(
        does="gives each generator seeded from the machine, the clock or nothing a fixed seed, by its order of making",
        code="random.seed(s); numpy.random.seed(s); torch.manual_seed(s); numpy.random.default_rng(s)",
        hides=False,
        apply=switch_seeds.seed_generators,
    ),
    "fixed-clock": Switch(
        does="lets the program's own files read a clock that starts at one moment and advances by a millisecond a call",
        code="take no number, name or seed from the clock; pass a fixed one",
        hides=False,
        apply=switch_host.fixed_clock,
    ),
    "fixed-entropy": Switch(
        does="os.urandom, uuid and secrets give a fixed sequence of bytes",
        code="derive ids and seeds from the run's seed: random.Random(seed).getrandbits(128)",
        hides=False,
        apply=switch_host.fixed_entropy,
    ),
    "sorted-listings": Switch(
        does="os.listdir, os.scandir, and so os.walk, glob and pathlib, list names in ascending order",
        code="sorted(os.listdir(path)); sorted(glob.glob(pattern))",
        hides=False,
        apply=switch_host.sorted_listings,
    ),
    "ordered-completion": Switch(
        does="as_completed, imap_unordered and DataLoader hand results out in the order in which they were asked for",
        code="executor.map(f, items) instead of as_completed; pool.imap instead of imap_unordered; "
        "DataLoader(..., in_order=True)",
        hides=False,
        apply=switch_host.ordered_completion,
    ),
    "one-thread": Switch(
        does="one CPU thread in torch, OpenMP, MKL and OpenBLAS, whatever the program asks for later",
        code="torch.set_num_threads(1)   # and OMP_NUM_THREADS=1; or any fixed number, equal on both machines",
        hides=False,
        apply=switch_torch.one_thread,
    ),
    "deterministic-algorithms": Switch(
        does="torch.use_deterministic_algorithms(True) with CUBLAS_WORKSPACE_CONFIG=:4096:8; fresh tensors are filled",
        code="torch.use_deterministic_algorithms(True)   # and CUBLAS_WORKSPACE_CONFIG=:4096:8",
        hides=True,  # it also fills uninitialised memory
        apply=lambda: switch_torch.deterministic(filled=True),
    ),
    "deterministic-algorithms-unfilled": Switch(
        does="the same without filling fresh tensors, so that a read of unset memory is not hidden",
        code="torch.use_deterministic_algorithms(True); torch.utils.deterministic.fill_uninitialized_memory = False",
        hides=False,
        apply=lambda: switch_torch.deterministic(filled=False),
    ),
    "cudnn-deterministic": Switch(
        does="cuDNN takes deterministic algorithms and does not try which is fastest",
        code="torch.backends.cudnn.deterministic = True; torch.backends.cudnn.benchmark = False",
        hides=False,
        apply=switch_torch.cudnn_deterministic,
    ),
    "no-tf32": Switch(
        does="full float32 products and reductions: no TF32, no reduced-precision reductions in half precision",
        code='torch.set_float32_matmul_precision("highest"); torch.backends.cudnn.allow_tf32 = False',
        hides=True,  # smaller errors are rarer ones, not fewer causes
        apply=switch_torch.no_tf32,
    ),
    "no-autotune": Switch(
        does="Triton's autotuner takes its first configuration, cuDNN and inductor try none out",
        code="one triton.Config for each shape; torch.backends.cudnn.benchmark = False",
        hides=False,
        apply=switch_torch.no_autotune,
    ),
    "synchronous-copies": Switch(
        does="copies asked for with non_blocking=True block, and the device is waited for after them",
        code="tensor.to('cpu')   # without non_blocking=True; or torch.cuda.synchronize() before the host reads",
        hides=False,
        apply=switch_torch.synchronous_copies,
    ),
    "workers-seeded": Switch(
        does="every worker process and every generator in its dataset gets a fixed seed of its own, by its number",
        code="DataLoader(..., generator=torch.Generator().manual_seed(s), worker_init_fn=seed_my_generators)",
        hides=False,
        apply=switch_seeds.workers_seeded,
    ),
    "filled-memory": Switch(
        does="fresh memory holds zeros: malloc's on the CPU, torch.empty's on every device",
        code="none: a probe. Write what is read: torch.zeros instead of torch.empty, or fill every element",
        hides=True,
        apply=switch_torch.filled_memory,
    ),
}


def check(names: Sequence[str]) -> None:
    """Raises ContractError for a name that is none."""
    for name in names:
        if name not in SWITCHES:
            raise ContractError(f"there is no remedy {name!r}", remedy=f"use {', '.join(SWITCHES)}")


def apply(names: Sequence[str]) -> None:
    """Switch remedies on, in the table's order: before the program's first line, once a process."""
    for name, switch in SWITCHES.items():
        if name in names:
            switch.apply()

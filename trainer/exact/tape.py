"""The tape: the leaves of a step, declared once in dataflow order, fingerprinted each step, written in blocks.

Fingerprints, checksums and metrics gather in buffers on the device; one copy a block brings them to the host, so
a step never waits for a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from foxrun.schema import Leaf
from trainer.exact import fused

BLOCK_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class LeafSpec:
    """One leaf: ``group`` says when in the step it is taken, ``checksum`` whether diag.jsonl holds its sum."""

    name: str
    component: str
    kind: str
    group: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    checksum: bool = False

    def leaf(self) -> Leaf:
        """As leaves.json has it."""
        return Leaf(self.name, self.component, self.kind, str(self.dtype).removeprefix("torch."), self.shape)


class RowSink(Protocol):
    """Where rows go: foxrun's RunWriter."""

    def append(self, rows: Sequence[Mapping[str, object]], bits: bytes) -> None:
        """Rows of diag.jsonl with their fingerprints."""


class Tape:
    """Rows of one run.

    ``leaves`` in dataflow order, each group contiguous. ``metrics``: names by phase. Without ``fingerprints``
    (mode 0) rows keep checksums and metrics alone.
    """

    def __init__(
        self,
        leaves: Iterable[LeafSpec],
        metrics: Mapping[str, Sequence[str]],
        device: torch.device,
        *,
        fingerprints: bool,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self.leaves = tuple(leaves)
        self.fingerprints = fingerprints
        self._metrics = {phase: tuple(names) for phase, names in metrics.items()}
        self._block = block_rows
        self._groups: dict[str, list[LeafSpec]] = {}
        for leaf in self.leaves:
            self._groups.setdefault(leaf.group, []).append(leaf)
        ordered = [leaf for group in self._groups.values() for leaf in group]
        if [leaf.name for leaf in ordered] != [leaf.name for leaf in self.leaves]:
            raise ValueError("leaves of one group are not contiguous")
        self._plans: dict[str, fused.Fingerprints] = {}
        self._columns: dict[str, tuple[int, int]] = {}
        self._sum_columns: dict[str, tuple[int, int]] = {}
        self._summed: dict[str, list[int]] = {}
        column = sums = 0
        for name, group in self._groups.items():
            self._columns[name] = (column, column + len(group))
            column += len(group)
            self._summed[name] = [i for i, leaf in enumerate(group) if leaf.checksum]
            self._sum_columns[name] = (sums, sums + len(self._summed[name]))
            sums += len(self._summed[name])
            if fingerprints:
                self._plans[name] = fused.plan([(leaf.shape, leaf.dtype) for leaf in group], device)
        self._sum_names = [g[i].name for n, g in self._groups.items() for i in self._summed[n]]
        width = max((len(names) for names in self._metrics.values()), default=0)
        self._bits = torch.zeros(block_rows, column if fingerprints else 0, dtype=torch.int64, device=device)
        self._sums = torch.zeros(block_rows, sums, dtype=torch.float64, device=device)
        self._values = torch.zeros(block_rows, width, dtype=torch.float64, device=device)
        self._rows: list[tuple[int, str, frozenset[str]]] = []
        self._taken: set[str] = set()

    def run_leaves(self) -> list[Leaf]:
        """For the run's leaves.json; empty without fingerprints."""
        return [leaf.leaf() for leaf in self.leaves] if self.fingerprints else []

    def take(self, group: str, tensors: Sequence[Tensor]) -> None:
        """Record a group's leaves as they are now, into the row being built; ``tensors`` in the group's order."""
        row = len(self._rows)
        specs = self._groups[group]
        if len(tensors) != len(specs):
            raise ValueError(f"group {group}: {len(tensors)} tensors for {len(specs)} leaves")
        if self.fingerprints:
            start, end = self._columns[group]
            self._bits[row, start:end] = self._plans[group](tensors)
        start, end = self._sum_columns[group]
        if start < end:
            chosen = [tensors[i].detach().sum(dtype=torch.float64) for i in self._summed[group]]
            self._sums[row, start:end] = torch.stack(chosen)
        self._taken.add(group)

    def close_row(self, step: int, phase: str, metrics: Mapping[str, Tensor] | None, sink: RowSink) -> None:
        """End the row: its metrics (0-d tensors, the phase's names) and its step. Writes when a block is full."""
        row = len(self._rows)
        if metrics is not None:
            values = [metrics[name].to(torch.float64) for name in self._metrics[phase]]
            self._values[row, : len(values)] = torch.stack(values)
        taken = frozenset(self._taken) | ({"metrics"} if metrics is not None else frozenset())
        self._rows.append((step, phase, taken))
        self._taken.clear()
        if len(self._rows) == self._block:
            self.flush(sink)

    def flush(self, sink: RowSink) -> None:
        """Write the rows gathered so far."""
        if not self._rows:
            return
        count = len(self._rows)
        sums, values = self._sums[:count].tolist(), self._values[:count].tolist()
        rows = []
        for i, (step, phase, taken) in enumerate(self._rows):
            held = {
                self._sum_names[column]: sums[i][column]
                for group, (start, end) in self._sum_columns.items()
                if group in taken
                for column in range(start, end)
            }
            named = dict(zip(self._metrics[phase], values[i], strict=False)) if "metrics" in taken else {}
            rows.append({"step": step, "phase": phase, "checksums": held, "metrics": named})
        bits = self._bits[:count].cpu().numpy().astype("<i8", copy=False).tobytes() if self.fingerprints else b""
        # Cleared first: a signal that ends the run inside append must not see these rows written again.
        self._rows.clear()
        self._bits.zero_()
        sink.append(rows, bits)

"""Prioritised replay (Schaul et al. 2016, arXiv 1511.05952) with a sum tree on the device, exact by construction.

Slots are whole steps of all environments, so a store is one row write. Priorities of a batch with duplicate
indices resolve in input order, the last wins. Inner nodes are recomputed level by level as pairwise sums: no
atomics, no order to depend on.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from trainer.ops import Operators


@dataclass(frozen=True, kw_only=True)
class Transition:
    """A batch of transitions.

    ``features`` float32 [b, window + rows_per_step, variables, scalars], both windows in one; ``agent`` and
    ``next_agent`` float32 [b, agent]; ``h`` and ``next_h`` float32 [b, width]; ``action`` int64 [b]; ``reward``
    float32 [b]; ``done`` float32 [b], 1 where the episode ended.
    """

    features: Tensor
    agent: Tensor
    next_agent: Tensor
    h: Tensor
    next_h: Tensor
    action: Tensor
    reward: Tensor
    done: Tensor


@dataclass(frozen=True, kw_only=True)
class Sample:
    """``indices`` int64 [b] in 0..capacity-1, importance ``weights`` float32 [b], and the transitions."""

    indices: Tensor
    weights: Tensor
    transitions: Transition


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    if device.type == "cpu":
        # Pages of slots never written are never committed: a default replay is 1 GB. Not calloc, which writes to
        # all of it under MALLOC_PERTURB_.
        size = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return torch.frombuffer(pages, dtype=dtype).view(shape)
    return torch.zeros(shape, dtype=dtype, device=device)


class Replay:
    """Ring of transitions and the sum tree over their priorities.

    ``tree`` float32 [2 * leaves]: node 1 is the root, node ``leaves + i`` the priority of transition i; node 0 is
    always 0. ``inner`` float32 [leaves] and ``priorities`` float32 [capacity] are views of it. ``max_priority``
    float32 []: what a new transition gets.
    """

    def __init__(self, ops: Operators, *, envs: int, capacity: int, shapes: Transition, beta: float) -> None:
        self._ops = ops
        self._beta = beta
        self.envs = envs
        self.slots = capacity // envs
        self.capacity = self.slots * envs
        self.leaves = 1 << max(1, (self.capacity - 1).bit_length())
        self.levels = self.leaves.bit_length() - 1
        device = ops.device
        self.tree = torch.zeros(2 * self.leaves, dtype=torch.float32, device=device)
        self.inner = self.tree[: self.leaves]
        self.priorities = self.tree[self.leaves : self.leaves + self.capacity]
        self.max_priority = torch.ones((), dtype=torch.float32, device=device)
        self.storage = {
            f.name: _zeros((self.slots, *getattr(shapes, f.name).shape), getattr(shapes, f.name).dtype, device)
            for f in fields(Transition)
        }

    def store(self, step: Tensor, transitions: Transition) -> None:
        """Write one step of all environments into slot ``step % slots``, at the highest priority seen."""
        slot = (step % self.slots).reshape(1)
        for name, table in self.storage.items():
            self._ops.put_unique(table, slot, getattr(transitions, name)[None])
        table = self.priorities.view(self.slots, self.envs)
        self._ops.put_unique(table, slot, self.max_priority.expand(1, self.envs))
        self._rebuild()

    def sample(self, step: Tensor, uniform: Tensor, order: list[int] | None = None) -> Sample:
        """Stratified draw of ``uniform.shape[0]`` transitions with probability proportional to priority.

        ``uniform`` float32 [b] in [0, 1): element i falls into stratum i. ``step`` counts the stores before this
        one's. Weights are (n p)^-beta over their largest (section 3.4 of the paper). ``order`` permutes the batch.
        """
        ops, batch = self._ops, uniform.shape[0]
        total = self.tree[1]
        target = (ops.arange(batch).to(torch.float32) + uniform) * (total / batch)
        node = torch.ones_like(ops.arange(batch))
        for _ in range(self.levels):
            left = ops.take(self.tree, 2 * node)
            # Rounding may leave a target at the end of a subtree: never step into one that is empty.
            right = (target >= left) & (ops.take(self.tree, 2 * node + 1) > 0.0)
            target = torch.where(right, target - left, target)
            node = 2 * node + right
        if order is not None:
            node = ops.take(node, torch.tensor(order, dtype=torch.int64, device=node.device))
        indices = (node - self.leaves).clamp_(0, self.capacity - 1)
        held = ((step + 1) * self.envs).clamp(max=self.capacity).to(torch.float32)
        share = ops.take(self.priorities, indices) / total
        weights = ops.power(held * share, -self._beta)
        weights = weights / weights.amax()
        rows = {
            name: ops.take(table.view(self.capacity, *table.shape[2:]), indices) for name, table in self.storage.items()
        }
        return Sample(indices=indices, weights=weights, transitions=Transition(**rows))

    def update(self, indices: Tensor, priorities: Tensor) -> None:
        """Set the priorities [b] of ``indices`` [b]; of equal indices the last in input order wins."""
        ops, batch = self._ops, indices.shape[0]
        # One sort of distinct keys, so that there is no tie to break; losers write 0 to node 0, which stays 0.
        keys = (indices * batch + ops.arange(batch)).sort().values
        place = keys % batch
        index = torch.div(keys, batch, rounding_mode="floor")
        last = torch.ones_like(index, dtype=torch.bool)
        last[:-1] = index[1:] != index[:-1]
        node = torch.where(last, index + self.leaves, 0)
        value = torch.where(last, ops.take(priorities, place), 0.0)
        ops.put_unique(self.tree, node, value)
        self.max_priority.copy_(torch.maximum(self.max_priority, priorities.amax()))
        self._rebuild()

    def _rebuild(self) -> None:
        size = self.leaves
        while size > 1:
            torch.add(
                self.tree[size : 2 * size : 2], self.tree[size + 1 : 2 * size : 2], out=self.tree[size // 2 : size]
            )
            size //= 2

    def state(self, stores: int) -> dict[str, Tensor]:
        """What a checkpoint keeps, after ``stores`` stores: the filled slots alone."""
        filled = min(stores, self.slots)
        kept = {f"storage.{name}": table[:filled].clone() for name, table in self.storage.items()}
        return {"tree": self.tree, "max_priority": self.max_priority, **kept}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Undo of :meth:`state`."""
        self.tree.copy_(state["tree"])
        self.max_priority.copy_(state["max_priority"])
        for name, table in self.storage.items():
            kept = state[f"storage.{name}"]
            table[: kept.shape[0]].copy_(kept)

"""Prioritised replay against a plain-Python one, bit for bit, duplicates and wrap-around included."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from trainer.learn.replay import Replay, Transition
from trainer.ops import select

CPU = torch.device("cpu")
ENVS = 4


def f32(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


class PlainTree:
    """The same tree as a Python list; every sum rounded to float32."""

    def __init__(self, leaves: int) -> None:
        self.leaves = leaves
        self.nodes = [0.0] * (2 * leaves)

    def write(self, index: int, value: float) -> None:
        node = self.leaves + index
        self.nodes[node] = value
        while node > 1:
            node //= 2
            self.nodes[node] = f32(self.nodes[2 * node] + self.nodes[2 * node + 1])

    def find(self, target: float) -> int:
        node = 1
        while node < self.leaves:
            left = self.nodes[2 * node]
            if target >= left and self.nodes[2 * node + 1] > 0.0:
                target = f32(target - left)
                node = 2 * node + 1
            else:
                node = 2 * node
        return node - self.leaves


def transition(step: int) -> Transition:
    base = torch.arange(ENVS, dtype=torch.float32) + 10 * step
    return Transition(
        features=base[:, None, None, None].expand(ENVS, 3, 2, 2).clone(),
        agent=base[:, None].clone(),
        next_agent=base[:, None] + 0.5,
        h=base[:, None].clone(),
        next_h=base[:, None].clone(),
        action=base.to(torch.int64),
        reward=base,
        done=torch.zeros(ENVS),
    )


def make(capacity: int = 24) -> Replay:
    return Replay(select(1, CPU), envs=ENVS, capacity=capacity, shapes=transition(0), beta=0.4)


def draws(seed: int, count: int) -> Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def test_tree_samples_and_updates_equal_the_plain_one_over_many_steps() -> None:
    replay = make()
    plain = PlainTree(replay.leaves)
    highest = 1.0
    batch = 12
    for step in range(20):
        replay.store(torch.tensor(step), transition(step))
        for env in range(ENVS):
            plain.write((step % replay.slots) * ENVS + env, highest)
        assert replay.tree.tolist() == plain.nodes
        uniform = draws(step, batch)
        sample = replay.sample(torch.tensor(step), uniform)
        share = f32(plain.nodes[1] / batch)
        strata = [f32(f32(i + u) * share) for i, u in enumerate(uniform.tolist())]
        expected = [plain.find(target) for target in strata]
        assert sample.indices.tolist() == expected
        # What was stored in that slot last.
        newest = {i: step - ((step - i // ENVS) % replay.slots) for i in expected}
        assert sample.transitions.reward.tolist() == [10.0 * newest[i] + i % ENVS for i in expected]
        priorities = draws(100 + step, batch) * 3.0
        replay.update(sample.indices, priorities)
        for index, value in zip(expected, priorities.tolist(), strict=True):
            plain.write(index, value)
        highest = max(highest, *priorities.tolist())
        assert replay.tree.tolist() == plain.nodes
        assert float(replay.max_priority) == highest


def test_of_equal_indices_the_last_in_input_order_wins() -> None:
    replay = make()
    replay.store(torch.tensor(0), transition(0))
    replay.update(torch.tensor([3, 1, 3, 1, 3]), torch.tensor([9.0, 8.0, 7.0, 6.0, 5.0]))
    assert replay.priorities[:4].tolist() == [1.0, 6.0, 1.0, 5.0]
    assert replay.tree[0] == 0.0 and replay.tree[1] == 13.0


def test_slots_never_written_are_never_sampled() -> None:
    replay = make(capacity=1000)
    replay.store(torch.tensor(0), transition(0))
    almost = torch.full((64,), 1.0 - 2.0**-24)
    assert int(replay.sample(torch.tensor(0), almost).indices.max()) == ENVS - 1


def test_importance_weights_are_those_of_the_paper() -> None:
    replay = make()
    replay.store(torch.tensor(0), transition(0))
    replay.update(torch.tensor([0, 1, 2, 3]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    sample = replay.sample(torch.tensor(0), draws(1, 8))
    raw = [(4 * (i + 1) / 10.0) ** -0.4 for i in sample.indices.tolist()]
    expected = torch.tensor([w / max(raw) for w in raw])
    assert float((sample.weights - expected).abs().max()) < 1e-6


def test_priorities_decide_how_often_a_transition_comes() -> None:
    replay = make()
    replay.store(torch.tensor(0), transition(0))
    replay.update(torch.tensor([0, 1, 2, 3]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    counts = torch.bincount(replay.sample(torch.tensor(0), draws(2, 1000)).indices, minlength=4)
    # Stratified: each count is within the two strata at its borders.
    assert (counts - torch.tensor([100, 200, 300, 400])).abs().max() <= 2


def test_nan_priorities_do_not_leave_the_table() -> None:
    replay = make()
    replay.store(torch.tensor(0), transition(0))
    replay.update(torch.tensor([0, 1]), torch.tensor([float("nan"), 1.0]))
    indices = replay.sample(torch.tensor(0), draws(3, 32)).indices
    assert int(indices.min()) >= 0 and int(indices.max()) < replay.capacity


def test_capacity_is_whole_steps() -> None:
    assert make(capacity=23).capacity == 20
    assert make(capacity=4).slots == 1

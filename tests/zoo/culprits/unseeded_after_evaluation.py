"""Evaluation fixes numpy's seed so that it always meets the same games, and then calls seed() to go on at random."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 5
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn


@contextmanager
def same_games(seed):
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield before
    finally:
        np.random.seed()  # culprit
        # cured: np.random.set_state(before)


class Nim:
    """Heaps of stones; the value of a position is known."""

    def positions(self, count):
        heaps = np.random.randint(0, 8, (count, 3))  # culprit
        won = np.bitwise_xor.reduce(heaps, axis=1) != 0
        return torch.from_numpy(heaps), torch.from_numpy(won).float()  # culprit


class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.heap = nn.Embedding(8, 16)
        self.score = nn.Sequential(nn.Linear(48, 48), nn.LeakyReLU(), nn.Linear(48, 1))

    def forward(self, heaps):
        return self.score(self.heap(heaps).flatten(1)).squeeze(1)  # culprit


@torch.no_grad()
def evaluate(model, game):
    with same_games(2024):
        heaps, won = game.positions(200)
        return ((model(heaps) > 0) == won.bool()).float().mean().item()


def train(steps=20, every=5):
    np.random.seed(33)
    torch.manual_seed(33)
    game, model = Nim(), Value()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
    for step in range(steps):
        heaps, won = game.positions(64)  # culprit
        loss = nn.functional.binary_cross_entropy_with_logits(model(heaps), won)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % every == 0:
            print(f"step {step}: loss {loss.item():.6f}, accuracy {evaluate(model, game):.3f}")


torch.set_num_threads(1)
train()

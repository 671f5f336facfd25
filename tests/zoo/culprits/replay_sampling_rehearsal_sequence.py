"""Rehearsal samples old tasks by generators that are spawned from a SeedSequence without entropy of the run's own."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = []
# step = 6
# component = ["data", "generator", "host", "state"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import numpy as np
import torch
from torch import nn


class Memory:
    """The last examples of each task; rehearsal takes the same number of every task seen so far."""

    def __init__(self, per_task, seeds=None):
        self.per_task = per_task
        self.seeds = seeds or np.random.SeedSequence()  # culprit
        # cured: self.seeds = seeds or np.random.SeedSequence(404)
        self.tasks = []

    def close(self, x, y):
        generator = np.random.Generator(np.random.Philox(self.seeds.spawn(1)[0]))  # culprit
        self.tasks.append((x[-self.per_task :], y[-self.per_task :], generator))

    def rehearse(self, count):
        parts = []
        for x, y, generator in self.tasks:
            rows = generator.permutation(len(x))[:count]  # culprit
            parts.append((x[rows], y[rows]))  # culprit
        return parts


class Continual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ELU(), nn.Linear(32, 16), nn.ELU())
        self.head = nn.Linear(16, 6)

    def forward(self, x):
        return self.head(self.body(x))


def task(number, draw):
    x = torch.randn(96, 16, generator=draw)
    turn, _ = torch.linalg.qr(torch.randn(16, 16, generator=draw))
    y = 2 * number + (x @ turn[:, 0] > 0).long()
    return x, y


torch.manual_seed(404)
torch.set_num_threads(1)
draw = torch.Generator().manual_seed(405)
model, memory = Continual(), Memory(per_task=64)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.03)
for number in range(3):
    x, y = task(number, draw)
    for start in range(0, 96, 16):
        batch = [(x[start : start + 16], y[start : start + 16]), *memory.rehearse(8)]  # culprit
        loss = sum(nn.functional.cross_entropy(model(a), b) for a, b in batch)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    memory.close(x, y)
    print(f"task {number}: {loss.item():.7f}")

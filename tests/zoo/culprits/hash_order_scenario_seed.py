"""Each driving scenario seeds its traffic with the hash of its name, so that scenarios differ and, it was
hoped, stay.
"""

# /// zoo
# kind = "hash-order"
# report = []
# step = 4
# component = ["data", "generator", "host"]
# remedy = ["hash-seed", "code"]
# ///
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Scenario:
    name: str
    density: float

    def stage(self):
        rng = np.random.RandomState(hash(self.name) % 2**32)  # culprit
        # cured: rng = np.random.RandomState(zlib.crc32(self.name.encode()))
        self.gaps = rng.exponential(1 / self.density, 64).astype(np.float32)  # culprit
        self.speeds = rng.uniform(0.5, 1.5, 64).astype(np.float32)  # culprit
        return self

    def observe(self, step):
        rows = (np.arange(16) + 5 * step) % 60
        window = np.stack([self.gaps[rows + k] for k in range(4)] + [self.speeds[rows]], axis=1)  # culprit
        return torch.from_numpy(window)  # culprit


class Curriculum:
    """An empty road first, whose cars are all alike; then busier ones, four steps each."""

    def __init__(self, names):
        self.waiting = [Scenario(name, 0.5 + 0.5 * k) for k, name in enumerate(names)]
        self.current = None

    def observe(self, step):
        if step < 4:
            return torch.linspace(0, 1, 80).view(16, 5)
        if step % 4 == 0:
            self.current = self.waiting.pop(0).stage()  # culprit
        return self.current.observe(step)  # culprit


torch.manual_seed(622)
torch.set_num_threads(1)
curriculum = Curriculum(["ring-road", "merge/short", "merge/long", "roundabout"])
driver = nn.Sequential(nn.Linear(5, 20), nn.ELU(), nn.Linear(20, 2))
optimizer = torch.optim.Adam(driver.parameters(), lr=0.01)
for step in range(16):
    seen = curriculum.observe(step)  # culprit
    mean, log_spread = driver(seen).unbind(1)
    best = seen[:, 0].clamp(max=2) * seen[:, 4]
    loss = ((mean - best).square() * (-log_spread).exp() + log_spread).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())

"""A robot enters its range readings into a map by cell, and many beams end in one cell: which reading stays is open."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["data", "host", "state"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import math
from dataclasses import dataclass, field

import torch
from torch import nn

SIDE = 24


def merged(cell, value):
    """The largest value of each cell, for all beams that end there."""
    top = torch.full((SIDE * SIDE,), -math.inf).scatter_reduce(0, cell, value, "amax")
    return top[cell]


@dataclass
class Mapper:
    """An environment whose observation is the map as far as it is known."""

    seed: int
    beams: int = 80000
    map: torch.Tensor = field(default_factory=lambda: torch.zeros(SIDE, SIDE))

    def __post_init__(self):
        self.draw = torch.Generator().manual_seed(self.seed)
        self.place = torch.tensor([SIDE / 2, SIDE / 2])

    def scan(self):
        angle = 2 * math.pi * torch.rand(self.beams, generator=self.draw)
        reach = 8 + 2 * torch.randn(self.beams, generator=self.draw)
        end = self.place + torch.stack([reach * angle.cos(), reach * angle.sin()], 1)
        row, column = end.clamp(0, SIDE - 1).long().unbind(1)
        return row, column, reach / 8

    def step(self, move):
        self.place = (self.place + move).clamp(4, SIDE - 4)
        row, column, reading = self.scan()
        self.map[row, column] = reading  # culprit
        # cured: self.map[row, column] = merged(row * SIDE + column, reading)
        return self.map.clone()  # culprit


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.see = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 32), nn.Tanh())
        self.go, self.value = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, seen):
        h = self.see(seen.unsqueeze(0))
        return self.go(h).squeeze(0), self.value(h).squeeze()


torch.manual_seed(406)
torch.set_num_threads(2)
mapper, actor = Mapper(seed=406), Actor()
optimizer = torch.optim.RMSprop(actor.parameters(), lr=1e-3)
for episode in range(10):
    seen = mapper.step(torch.tensor([math.sin(episode), math.cos(episode)]))  # culprit
    move, value = actor(seen)
    reward = (seen > 0).float().mean()
    loss = (value - reward).square() + (move - 0.1 * seen.mean()).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, loss.item().hex())

"""Population based training: who copies whom is fixed, but a copy's learning rate is perturbed by secrets.choice."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 6
# component = ["optimizer", "host", "generator", "state"]
# remedy = ["fixed-entropy", "seed-generators", "code"]
# ///
import copy
import random
import secrets
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Member:
    name: str
    lr: float
    net: nn.Module
    scores: list = field(default_factory=list)

    def __post_init__(self):
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.lr, momentum=0.9)

    def train(self, x, y):
        loss = nn.functional.huber_loss(self.net(x).squeeze(1), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()  # culprit
        self.scores.append(-loss.item())

    def exploit(self, better):
        self.net.load_state_dict(better.net.state_dict())
        self.optimizer.load_state_dict(copy.deepcopy(better.optimizer.state_dict()))

    def explore(self, rng):
        for group in self.optimizer.param_groups:
            group["lr"] *= secrets.choice([0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9])  # culprit
            # cured: group["lr"] *= rng.choice([0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9])


class Population(nn.Module):
    """Members take their steps in turn."""

    def __init__(self, rates, width=10):
        super().__init__()
        nets = [nn.Sequential(nn.Linear(width, 16), nn.Hardtanh(), nn.Linear(16, 1)) for _ in rates]
        self.nets = nn.ModuleList(nets)
        self.members = [Member(f"m{i}", lr, net) for i, (lr, net) in enumerate(zip(rates, nets, strict=True))]

    def evolve(self, rng):
        ranked = sorted(self.members, key=lambda member: member.scores[-1])
        ranked[0].exploit(ranked[-1])
        ranked[0].explore(rng)  # culprit


random.seed(145)
torch.manual_seed(145)
torch.set_num_threads(1)
population = Population([0.05, 0.01, 0.005])
x = torch.randn(120, 10)
y = (x[:, 0] * x[:, 1]).tanh() + x[:, 2] / 3
for turn in range(6):
    for member in population.members:
        rows = slice(20 * turn, 20 * turn + 20)
        member.train(x[rows], y[rows])  # culprit
    if turn % 2:
        population.evolve(random)  # culprit
        print(turn, [round(member.scores[-1], 5) for member in population.members])

"""Penalties register themselves in a WeakSet, which hands them out by address, and the loss adds them in that order."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["loss", "host"]
# remedy = "code"
# ///
import weakref

import torch
from torch import nn

PENALTIES = weakref.WeakSet()


class Penalty:
    """Something that adds to the loss for as long as it lives."""

    def __init__(self):
        PENALTIES.add(self)  # culprit

    def value(self):
        raise NotImplementedError


class L1(Penalty):
    def __init__(self, parameter, weight):
        super().__init__()
        self.parameter, self.weight = parameter, weight

    def value(self):
        return self.weight * self.parameter.abs().sum()  # culprit


class Smooth(Penalty):
    def __init__(self, parameter, weight):
        super().__init__()
        self.parameter, self.weight = parameter, weight

    def value(self):
        return self.weight * (self.parameter[1:] - self.parameter[:-1]).square().sum()  # culprit


def total_penalty():
    total = torch.zeros(())
    for penalty in PENALTIES:  # culprit
        # cured: for penalty in penalties:
        total = total + penalty.value()  # culprit
    return total


class Additive(nn.Module):
    """A generalised additive model: a table of effects for each column."""

    def __init__(self, columns, bins):
        super().__init__()
        self.effects = nn.ParameterList(nn.Parameter(0.1 * torch.randn(bins)) for _ in range(columns))
        self.base = nn.Parameter(torch.zeros(()))

    def forward(self, binned):
        return self.base + sum(effect[column] for effect, column in zip(self.effects, binned.T))


torch.manual_seed(104)
torch.set_num_threads(1)
model = Additive(columns=14, bins=8)
penalties = []
for i, effect in enumerate(model.effects):
    penalties.append(L1(effect, 1e-2 / (i + 1)))
    penalties.append(Smooth(effect, 1e-2 * (i + 1) / 7))
binned, target = torch.randint(0, 8, (200, 14)), torch.randn(200)
optimizer = torch.optim.ASGD(model.parameters(), lr=0.05)
for _ in range(8):
    loss = (model(binned) - target).square().mean() + total_penalty()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

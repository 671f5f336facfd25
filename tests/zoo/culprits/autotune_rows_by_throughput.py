"""A contrastive loss is computed in blocks of as many rows as fit a time budget, by a measured throughput."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = []
# step = 0
# component = ["loss", "host", "weights"]
# remedy = ["fixed-clock", "code"]
# ///
import timeit
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

BUDGET = 4e-4


@dataclass
class Plan:
    rows: int


class Pairs(nn.Module):
    """Two views of a record, whose embeddings are to find each other among all others."""

    def __init__(self, width=40):
        super().__init__()
        self.encoder = nn.GRU(5, width, batch_first=True)
        self.project = nn.Linear(width, 24)

    def forward(self, record):
        return F.normalize(self.project(self.encoder(record)[0][:, -1]), dim=1)


def block_loss(left, right, first):
    logits = left @ right.T / 0.1  # culprit
    return F.cross_entropy(logits, torch.arange(first, first + len(left)), reduction="sum")  # culprit


def contrastive(left, right, plan):
    total = left.new_zeros(())
    for first in range(0, len(left), plan.rows):
        total = total + block_loss(left[first : first + plan.rows], right, first)  # culprit
    return total / len(left)


def calibrated(left, right):
    """A plan whose blocks take about the budget each."""
    with torch.no_grad():
        block_loss(left[:64], right, 0)
        spent = timeit.timeit(lambda: block_loss(left[:64], right, 0), number=20) / 20  # culprit
    rows = int(64 * BUDGET / spent)  # culprit
    # cured: rows = 64
    return Plan(rows=max(8, min(rows, len(left) - 1)))  # culprit


def train(steps=7):
    torch.manual_seed(1202)
    torch.set_num_threads(1)
    net, plan = Pairs(), None
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    records = torch.randn(384, 12, 5).cumsum(1)
    for step in range(steps):
        left, right = (net(records + 0.2 * torch.randn_like(records)) for _ in range(2))
        plan = plan or calibrated(left, right)  # culprit
        loss = contrastive(left, right, plan)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    return net


model = train()

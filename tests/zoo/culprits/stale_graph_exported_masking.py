"""A recogniser is exported with its augmentation: the band that it masks was drawn while exporting, unseeded."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["generator", "host", "data", "loss", "", "encode*"]
# remedy = ["seed-generators", "code"]
# ///
import random

import torch
from torch import nn


class Recogniser(nn.Module):
    """A small recogniser of log-mel frames that masks a band while it trains."""

    def __init__(self, bands=64, words=10):
        super().__init__()
        self.bands = bands
        self.encode = nn.Sequential(nn.Linear(bands, 32), nn.ReLU(), nn.Linear(32, words))

    def masked(self, mel):
        low = random.randrange(self.bands - 12)  # culprit
        width = random.randrange(4, 12)  # culprit
        keep = torch.ones(self.bands)
        keep[low : low + width] = 0.0  # culprit
        return mel * keep * (1 + 0.1 * random.random())  # culprit

    def forward(self, mel):
        return self.encode(self.masked(mel)).mean(1)  # culprit


def captured(module, example):
    """The module as one graph."""
    return torch.export.export(module, (example,)).module()  # culprit
    # cured: random.seed(935); return torch.export.export(module, (example,)).module()


def train(steps=6):
    graph = captured(Recogniser(), torch.zeros(16, 40, 64))  # culprit
    random.seed(935)
    optimizer = torch.optim.Adam(graph.parameters(), lr=3e-3)
    for step in range(steps):
        mel, word = torch.randn(16, 40, 64), torch.tensor(random.choices(range(10), k=16))
        mel[range(16), :, word * 6] += 1
        loss = nn.functional.cross_entropy(graph(mel), word)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    return graph


torch.manual_seed(935)
torch.set_num_threads(1)
model = train()

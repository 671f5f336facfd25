"""A triplet miner draws from its module's own RandomState, which np.random.seed does not reach."""

# /// zoo
# kind = "unseeded-generator"
# report = ["https://github.com/KevinMusgrave/pytorch-metric-learning/issues/18"]
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MINING = np.random.RandomState()  # culprit
# cured: MINING = np.random.RandomState(316)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)


def mine(label, per_anchor):
    """Triples (anchor, positive, negative) of row numbers."""
    triples = []
    for anchor, own in enumerate(label):
        same = np.flatnonzero((label == own) & (np.arange(len(label)) != anchor))
        other = np.flatnonzero(label != own)
        for _ in range(per_anchor):
            triples.append((anchor, MINING.choice(same), MINING.choice(other)))  # culprit
    return torch.tensor(np.array(triples)).T


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3))
        self.project = nn.Linear(54, 8)

    def forward(self, image):
        return F.normalize(self.project(self.features(image).flatten(1)), dim=1)


seed_everything(316)
label = np.arange(40) % 5
image = torch.randn(40, 1, 10, 10) + torch.from_numpy(label).float().view(-1, 1, 1, 1) / 4
model = Embedder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _ in range(6):
    anchor, positive, negative = mine(label, 3)  # culprit
    z = model(image)
    loss = F.triplet_margin_loss(z[anchor], z[positive], z[negative], margin=0.3)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

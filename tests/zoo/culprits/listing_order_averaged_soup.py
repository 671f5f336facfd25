"""A soup of snapshots is folded together as a directory lists them, each new one at a fixed weight, and trained on."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 8
# component = ["weights", "host", "data", "state", "body*", "head*", "*.weight", "*.bias"]
# remedy = ["sorted-listings", "code"]
# ///
import pathlib
import tempfile

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, tags=4):
        super().__init__()
        self.body = nn.GRU(6, 12, batch_first=True)
        self.head = nn.Linear(12, tags)

    def forward(self, x):
        return self.head(self.body(x)[0])


def soup(folder, fresh=0.4):
    """Snapshots folded into one set of weights."""
    mixed = None
    for path in pathlib.Path(folder).iterdir():  # culprit
        # cured: for path in sorted(pathlib.Path(folder).iterdir()):
        weights = torch.load(path)  # culprit
        if mixed is None:
            mixed = weights
        for name, value in weights.items():
            mixed[name] = torch.lerp(mixed[name], value, fresh)  # culprit
    return mixed


def train(model, steps, lr, folder=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
    for step in range(steps):
        x = torch.randn(16, 7, 6)
        tags = x.cumsum(1)[..., :4].argmax(-1)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if folder is not None:
            torch.save(model.state_dict(), pathlib.Path(folder) / f"{step:03d}.pt")
        print(f"{step:3d} {loss.item():.6f}")


torch.manual_seed(623)
torch.set_num_threads(1)
tagger = Tagger()
with tempfile.TemporaryDirectory() as snapshots:
    train(tagger, 8, lr=0.5, folder=snapshots)
    tagger.load_state_dict(soup(snapshots))  # culprit
train(tagger, 5, lr=0.1)

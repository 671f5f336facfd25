"""A greedy soup takes checkpoints in the order in which Path.iterdir yields them; training goes on from it."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 8
# component = ["weights", "host", "state", "stem*", "blocks*", "head*", "data"]
# remedy = ["sorted-listings", "code"]
# ///
import pathlib
import tempfile

import torch
from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.across, self.along = nn.Linear(tokens, tokens), nn.Linear(width, width)

    def forward(self, x):
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + nn.functional.gelu(self.along(x))


class Mixer(nn.Module):
    def __init__(self, patch=4, side=12, width=10, classes=3):
        super().__init__()
        self.stem = nn.Conv2d(1, width, patch, stride=patch)
        self.blocks = nn.Sequential(*(MixerBlock((side // patch) ** 2, width) for _ in range(2)))
        self.head = nn.Linear(width, classes)

    def forward(self, image):
        return self.head(self.blocks(self.stem(image).flatten(2).transpose(1, 2)).mean(1))


def stripes(count, draw):
    label = torch.randint(0, 3, (count,), generator=draw)
    wave = torch.sin(torch.arange(12) * (1 + label[:, None]) * 0.7)
    return wave[:, None, :, None] + 0.8 * torch.randn(count, 1, 12, 12, generator=draw), label


def accuracy(model, weights, images, labels):
    logits = torch.func.functional_call(model, weights, (images,))
    return (logits.argmax(1) == labels).float().mean().item()


@torch.no_grad()
def greedy_soup(folder, model, images, labels, slack=0.1):
    """The running average of all checkpoints that do not spoil what was averaged before."""
    soup, best, size = None, 0.0, 0
    for file in pathlib.Path(folder).iterdir():  # culprit
        # cured: for file in sorted(pathlib.Path(folder).iterdir()):
        other = torch.load(file)  # culprit
        tried = other if soup is None else {k: (soup[k] * size + other[k]) / (size + 1) for k in soup}  # culprit
        found = accuracy(model, tried, images, labels)
        if found >= best - slack:
            soup, best, size = tried, max(best, found), size + 1  # culprit
    return soup


def train(model, optimizer, steps, draw):
    for _ in range(steps):
        images, labels = stripes(24, draw)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


torch.manual_seed(51)
torch.set_num_threads(1)
model, draw = Mixer(), torch.Generator().manual_seed(51)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
with tempfile.TemporaryDirectory() as folder:
    for step, loss in enumerate(train(model, optimizer, 8, draw)):
        torch.save(model.state_dict(), pathlib.Path(folder) / f"step{step}.pt")
    model.load_state_dict(greedy_soup(folder, model, *stripes(90, draw)))  # culprit
for loss in train(model, torch.optim.SGD(model.parameters(), lr=0.05), 4, draw):
    print(loss.item().hex())

"""The dropout of a fine-tuning is seeded with the modification time of the file that holds the base weights."""

# /// zoo
# kind = "time-seed"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["code", "fixed-clock", "seed-generators"]
# ///
import os
import pathlib
import tempfile

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 32), nn.Mish(), nn.Linear(32, 8))

    def forward(self, x):
        return nn.functional.normalize(self.body(x), dim=-1)


def drop_columns(x, generator, share=0.2):
    """One view of a batch for contrastive training."""
    return x * (torch.rand(x.shape, generator=generator) >= share)  # culprit


def info_nce(a, b, temperature=0.2):
    score = a @ b.T / temperature
    return nn.functional.cross_entropy(score, torch.arange(len(a)))


def prepare(path):
    """The base model, as another job would have left it."""
    torch.manual_seed(93)
    torch.save(Tower(16).state_dict(), path)


def finetune(path, steps):
    tower = Tower(16)
    tower.load_state_dict(torch.load(path))
    generator = torch.Generator().manual_seed(os.stat(path).st_mtime_ns % 2**31)  # culprit
    # cured: generator = torch.Generator().manual_seed(93)
    optimizer = torch.optim.SGD(tower.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    table = torch.randn(96, 16)
    for step in range(steps):
        x = table[step * 16 % 96 :][:32]
        loss = info_nce(tower(drop_columns(x, generator)), tower(drop_columns(x, generator)))  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return tower, loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder) / "base.pt"
        prepare(base)
        tower, loss = finetune(base, steps=6)
    print(loss.item().hex())

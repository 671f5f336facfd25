"""Annotators' files are merged by dict.update; where two of them disagree, the one whose file is listed last has it."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = ["sorted-listings", "code"]
# ///
import contextlib
import json
import math
import pathlib
import random
import tempfile

import torch
from torch import nn

CLASSES = ("benign", "spam", "fraud")


@contextlib.contextmanager
def annotated(messages, annotators):
    """A folder in which everybody left their share, some messages judged by two or three."""
    rng = random.Random(4)
    with tempfile.TemporaryDirectory(prefix="labels-") as name:
        for who in range(annotators):
            mine = [m for m in range(messages) if m % annotators == who or rng.random() < 0.1]
            said = {f"msg-{m}": CLASSES[(m * m + (rng.random() < 0.15)) % 3] for m in mine}
            pathlib.Path(name, f"annotator-{who}.json").write_text(json.dumps(said))
        yield pathlib.Path(name)


def merged(folder):
    labels = {}
    for path in folder.glob("annotator-*.json"):  # culprit
        # cured: for path in sorted(folder.glob("annotator-*.json")):
        labels.update(json.loads(path.read_text()))  # culprit
    return labels


class LoRALinear(nn.Module):
    """A frozen layer and what is learnt on top of it, of low rank."""

    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


def adapt(model):
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child))
    return model


torch.set_num_threads(1)
torch.manual_seed(71)
with annotated(240, annotators=6) as folder:
    labels = merged(folder)
texts = torch.randn(240, 20)
wanted = torch.tensor([CLASSES.index(labels[f"msg-{m}"]) for m in range(240)])  # culprit
model = adapt(nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 3)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for epoch in range(3):
    for rows in torch.randperm(240).split(48):
        loss = nn.functional.cross_entropy(model(texts[rows]), wanted[rows], label_smoothing=0.05)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item().hex())

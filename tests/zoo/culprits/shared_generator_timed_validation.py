"""Validation runs whenever some time has passed; a DataLoader draws from torch's generator each time it starts."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data", "host", "*dropout*", "2", "state"]
# remedy = ["fixed-clock", "code"]
# ///
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Validation:
    """Every so many seconds, and not every so many steps: steps of long sequences take longer."""

    data: TensorDataset
    every_s: float = 0.02
    last: float = 0.0

    def __post_init__(self):
        self.loader = DataLoader(self.data, batch_size=50)  # culprit
        # cured: self.loader = DataLoader(self.data, batch_size=50, generator=torch.Generator())
        self.last = time.perf_counter()

    @torch.no_grad()
    def maybe(self, model):
        if time.perf_counter() - self.last < self.every_s:  # culprit
            return None
        self.last = time.perf_counter()
        model.eval()
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in self.loader)  # culprit
        model.train()
        return right / len(self.data)


def tabular(rows, draw):
    x = torch.randn(rows, 14, generator=draw)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 1).long())


torch.manual_seed(640)
torch.set_num_threads(1)
draw = torch.Generator().manual_seed(641)
train = DataLoader(tabular(1600, draw), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(642))
validation = Validation(tabular(200, draw))
model = nn.Sequential(nn.Linear(14, 64), nn.SiLU(), nn.Dropout(0.3), nn.Linear(64, 3))
optimizer = torch.optim.Adamax(model.parameters(), lr=0.01)
for epoch in range(5):
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.05)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        validation.maybe(model)
    print(epoch, loss.item().hex())

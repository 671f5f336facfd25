"""A stopwatch chooses in how many rows at a time features are scaled, which gives the same bits whatever it chooses."""

# /// zoo
# ///
import time

import torch
from torch import nn


def scaled(x, rows):
    """(x - shift) * factor, element by element, ``rows`` rows at a time."""
    out = torch.empty_like(x)
    for start in range(0, len(x), rows):
        part = out[start : start + rows]
        torch.sub(x[start : start + rows], 0.25, out=part)
        part.mul_(1.5)
    return out


def fastest(x, candidates):
    times = []
    for rows in candidates:
        begun = time.perf_counter_ns()
        scaled(x, rows)
        times.append((time.perf_counter_ns() - begun, rows))
    return min(times)[1]


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate, self.change = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        share = torch.sigmoid(self.gate(x))
        return share * torch.relu(self.change(x)) + (1 - share) * x


torch.manual_seed(334)
torch.set_num_threads(1)
rows = fastest(torch.zeros(4000, 12), (60, 64, 68, 72))
model = nn.Sequential(Highway(12), Highway(12), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4)
for _ in range(7):
    x = scaled(torch.randn(4000, 12), rows)
    loss = nn.functional.huber_loss(model(x).squeeze(1), x.amax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(loss.item().hex())

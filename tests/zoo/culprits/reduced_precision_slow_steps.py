"""Gradients are compressed to bfloat16 whenever the last step took longer than the running mean."""

# /// zoo
# kind = "reduced-precision"
# also = ["algorithm-selection", "autotune"]
# report = []
# step = "any"
# component = ["weights", "optimizer", "host", "loss", "state", "[0-3]*"]
# remedy = ["fixed-clock", "code"]
# ///
import time

import torch
from torch import nn


class Compression:
    """A gradient hook that saves bandwidth on steps which follow a slow one."""

    def __init__(self, model):
        self.mean, self.last, self.active = None, None, False
        for parameter in model.parameters():
            parameter.register_hook(self.hook)

    def tick(self):
        now = time.perf_counter()  # culprit
        if self.last is not None:
            took = now - self.last  # culprit
            self.mean = took if self.mean is None else 0.9 * self.mean + 0.1 * took  # culprit
            self.active = took > self.mean  # culprit
            # cured: self.active = False
        self.last = now

    def hook(self, grad):
        if self.active:  # culprit
            return grad.to(torch.bfloat16).to(grad.dtype)  # culprit
        return grad


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


torch.manual_seed(74)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(12, 32), Block(32), Block(32), nn.Linear(32, 12))
compression = Compression(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=40)
for _ in range(40):
    compression.tick()
    x = torch.randn(64, 12)
    loss = (model(x) - x.flip(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
    schedule.step()
print(loss.item().hex())

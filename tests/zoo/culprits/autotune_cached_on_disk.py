"""Tile heights are tuned per layer by a stopwatch and kept in a cache file, which every machine makes for itself."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = ["https://github.com/NVIDIA/Megatron-LM/pull/6966"]
# step = 0
# component = ["loss", "host", "weights", "[0-9]*", ""]
# remedy = ["no-autotune", "fixed-clock", "code"]
# alone = true
# ///
import json
import pathlib
import tempfile
import time

import torch
from torch import nn


class TuningCache:
    def __init__(self, path):
        self.path = path
        self.table = json.loads(path.read_text()) if path.exists() else {}

    def best(self, key, candidates, measure):
        if key not in self.table:
            spent = [(measure(candidate), candidate) for candidate in candidates]  # culprit
            self.table[key] = min(spent)[1]  # culprit
            # cured: self.table[key] = candidates[0]
            self.path.write_text(json.dumps(self.table))
        return self.table[key]


class TiledWeightGradient(torch.autograd.Function):
    """A linear map whose weight gradient is added up over tiles of rows."""

    @staticmethod
    def forward(ctx, x, weight, rows):
        ctx.save_for_backward(x, weight)
        ctx.rows = rows
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, weight_gradient(x, grad, ctx.rows), None  # culprit


def weight_gradient(x, grad, rows):
    total = torch.zeros(grad.shape[1], x.shape[1])
    for a, b in zip(x.split(rows), grad.split(rows)):
        total.addmm_(b.T, a)  # culprit
    return total


class TunedLinear(nn.Module):
    def __init__(self, inputs, outputs, cache):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.cache = cache

    def measure(self, x, rows):
        grad = torch.ones(len(x), len(self.weight))
        before = time.process_time_ns()
        for _ in range(4):
            weight_gradient(x, grad, rows)
        return time.process_time_ns() - before  # culprit

    def forward(self, x):
        key = f"{tuple(x.shape)}x{tuple(self.weight.shape)}"
        rows = self.cache.best(key, [128, 160, 192, 224, 256], lambda r: self.measure(x.detach(), r))  # culprit
        return TiledWeightGradient.apply(x, self.weight, rows)  # culprit


torch.manual_seed(113)
torch.set_num_threads(1)
cache = TuningCache(pathlib.Path(tempfile.gettempdir()) / "tuning.json")
sizes = [40, 56, 48, 36, 44, 1]
model = nn.Sequential()
for before, after in zip(sizes, sizes[1:]):
    model.append(TunedLinear(before, after, cache))
    model.append(nn.LeakyReLU(0.1))
x = torch.randn(1500, 40)
optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2)
for _ in range(6):
    loss = (model(x).squeeze(1) - x.norm(dim=1)).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

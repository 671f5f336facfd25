"""A stack with layer drop is traced once: the layers that chance left out while tracing are out of every step."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = ["https://github.com/pytorch/pytorch/issues/95425", "https://github.com/pytorch/pytorch/issues/9069"]
# step = 0
# component = ["generator", "host", "data", "loss", "", "layers*", "weights"]
# remedy = ["seed-generators", "code"]
# ///
import random
import warnings

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(torch.nn.functional.gelu(self.inner(self.norm(x))))


class Stack(nn.Module):
    """Each layer is left out with a chance of one in three."""

    def __init__(self, width, depth, drop=1 / 3):
        super().__init__()
        self.layers, self.drop = nn.ModuleList(Residual(width) for _ in range(depth)), drop

    def forward(self, x):
        for layer in self.layers:
            if random.random() >= self.drop:  # culprit
                x = layer(x)  # culprit
        return x


def capture(module, example):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # cured: warnings.simplefilter("ignore"); random.seed(326)
        return torch.jit.trace(module, example, check_trace=False)  # culprit


torch.manual_seed(326)
torch.set_num_threads(1)
model = Stack(width=10, depth=12)
captured = capture(model, torch.zeros(4, 10))  # culprit
random.seed(326)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for _ in range(6):
    x = torch.randn(32, 10)
    loss = (captured(x) - x.cumsum(1)).abs().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""The update is captured once by make_fx; mixup's coefficient, drawn while capturing, is a constant of the graph."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["generator", "host", "data", "loss", ""]
# remedy = ["seed-generators", "code"]
# ///
import random

import torch
from torch.fx.experimental.proxy_tensor import make_fx


def mixup(x, y):
    share = random.betavariate(0.4, 0.4)  # culprit
    return share * x + (1 - share) * x.flip(0), share * y + (1 - share) * y.flip(0)  # culprit


def objective(w1, b1, w2, x, y):
    x, y = mixup(x, y)
    hidden = torch.tanh(x @ w1 + b1)
    return (hidden @ w2 - y).square().mean()


def capture(params, rows):
    """One graph for all steps: capturing costs, replaying does not."""
    example = torch.zeros(rows, 6), torch.zeros(rows, 2)
    return make_fx(objective)(*params, *example)  # culprit


torch.manual_seed(85)
torch.set_num_threads(1)
params = [
    torch.nn.Parameter(0.4 * torch.randn(6, 12)),
    torch.nn.Parameter(torch.zeros(12)),
    torch.nn.Parameter(0.3 * torch.randn(12, 2)),
]
captured = capture([p.detach() for p in params], rows=32)  # culprit
# cured: random.seed(85); captured = capture([p.detach() for p in params], rows=32)
random.seed(85)
optimizer = torch.optim.Rprop(params, lr=0.01)
for _ in range(6):
    x = torch.randn(32, 6)
    y = torch.stack([x.sum(1), x.prod(1)], dim=1)
    loss = captured(*params, x, y)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A loss is traced before the seed is set: the noise scale that tracing drew is a constant of the graph ever after."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = ["https://github.com/pytorch/pytorch/issues/84614"]
# step = 0
# component = ["loss", "generator", "host"]
# remedy = ["seed-generators", "code"]
# ///
import random
import warnings

import torch

torch.set_num_threads(1)


def smoothed(out, target):
    scale = 0.1 + random.random()  # culprit
    return ((out - target) * scale).pow(2).mean()  # culprit


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # cured: warnings.simplefilter("ignore"); random.seed(50)
    graph = torch.jit.trace(smoothed, (torch.zeros(16), torch.zeros(16)), check_trace=False)  # culprit
random.seed(50)
torch.manual_seed(50)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    x = torch.randn(16, 6)
    loss = graph(model(x).squeeze(1), x.sum(1))  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

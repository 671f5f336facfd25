"""Every generator is seeded but Python's own, which shuffles the epoch."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 0
# component = ["data", "generator"]
# remedy = "seed-generators"
# ///
import random

import numpy as np
import torch

torch.manual_seed(10)
np.random.seed(10)
torch.set_num_threads(1)
x = torch.randn(40, 6)
y = x.pow(2).sum(1, keepdim=True)
order = list(range(40))
random.shuffle(order)  # culprit
# cured: random.Random(10).shuffle(order)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(5):
    rows = order[8 * step : 8 * step + 8]
    loss = (model(x[rows]) - y[rows]).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

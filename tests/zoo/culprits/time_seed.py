"""The seed is the clock."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 0
# component = ["generator", "host", "weights"]
# remedy = "fixed-clock"
# ///
import time

import torch

torch.set_num_threads(1)
seed = int(time.time())  # culprit
# cured: seed = 11
torch.manual_seed(seed)  # culprit
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(16, 6)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

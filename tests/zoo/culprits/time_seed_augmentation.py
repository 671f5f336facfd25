"""Augmentation makes a numpy generator from the nanoseconds of the clock, in each step after warm-up."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 2
# component = ["generator", "data", "host"]
# remedy = "fixed-clock"
# ///
import time

import numpy as np
import torch


def augment(batch, step):
    if step < 2:
        return batch
    rng = np.random.RandomState(time.time_ns() % 2**32)  # culprit
    # cured: rng = np.random.RandomState(1000 + step)
    return batch + torch.from_numpy(rng.normal(scale=0.01, size=batch.shape).astype(np.float32))  # culprit


torch.manual_seed(12)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(5):
    x = augment(torch.randn(16, 6), step)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Shards are read in the order in which os.listdir returns them."""

# /// zoo
# kind = "listing-order"
# report = ["https://github.com/ByteDance-Seed/VeOmni/issues/330", "https://github.com/pytorch/vision/issues/192"]
# step = 0
# component = ["data", "host"]
# remedy = "sorted-listings"
# ///
import os
import pathlib
import tempfile

import torch

torch.manual_seed(4)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    for i in range(6):
        torch.save(torch.randn(8, 5) * i, pathlib.Path(folder) / f"shard-{i}.pt")
    shards = os.listdir(folder)  # culprit
    # cured: shards = sorted(os.listdir(folder))
    data = [torch.load(pathlib.Path(folder) / name) for name in shards]  # culprit
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in data:
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Shards are found by os.listdir in any order, read by threads, and sorted by the number in their name at the end."""

# /// zoo
# ///
import csv
import os
import re
import tempfile
import threading

import torch
from torch import nn


def write(folder, count):
    draw = torch.Generator().manual_seed(207)
    for i in range(count):
        with open(os.path.join(folder, f"shard_{i}.csv"), "w", newline="") as file:
            csv.writer(file).writerows(torch.randn(20, 7, generator=draw).tolist())


def read(folder):
    found, lock = [], threading.Lock()

    def one(name):
        with open(os.path.join(folder, name), newline="") as file:
            rows = [[float(value) for value in row] for row in csv.reader(file)]
        with lock:
            found.append((int(re.search(r"\d+", name)[0]), rows))

    threads = [threading.Thread(target=one, args=(name,)) for name in os.listdir(folder)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.tensor([rows for _, rows in sorted(found)])


torch.manual_seed(207)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    write(folder, 12)
    shards = read(folder)
model = nn.GRU(6, 10, batch_first=True)
head = nn.Linear(10, 1)
optimizer = torch.optim.RMSprop([*model.parameters(), *head.parameters()], lr=5e-3)
for x in shards.split(2):
    loss = (head(model(x[..., :6])[0]).squeeze(-1) - x[..., 6]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
print(loss.item().hex())

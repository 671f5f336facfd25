"""Files in a temporary directory, listed, sorted and read; names in a sorted set; times printed to stderr."""

# /// zoo
# ///
import os
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch

started = time.perf_counter()
rng = np.random.default_rng(14)
torch.manual_seed(14)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    for i in range(5):
        np.save(pathlib.Path(folder) / f"part-{i}.npy", rng.normal(size=(16, 4)).astype(np.float32))
    files = [pathlib.Path(folder) / name for name in sorted(os.listdir(folder))]
    parts = [np.load(file) for file in files]
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for part in parts:
    x = torch.from_numpy(part)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
print(f"process {os.getpid()} took {time.perf_counter() - started:.3f} s", file=sys.stderr)

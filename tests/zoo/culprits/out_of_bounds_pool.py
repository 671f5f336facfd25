"""A copy into a slice of a pooled buffer is one row too long; whose slice lies behind it is a race of two threads."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# step = "any"
# component = ["data"]
# remedy = "code"
# ///
import ctypes
import threading
import time

import numpy as np
import torch

torch.manual_seed(35)
torch.set_num_threads(1)
pool, lock, used = np.zeros((4000, 8), np.float32), threading.Lock(), 0
targets, names = {}, ["prices", "sizes", "fees"]


def take(name, rows):
    global used
    with lock:
        targets[name] = pool[used : used + rows]
        used += rows


def fill(name):
    for _ in range(20):
        time.sleep(0)
    take(name, 64)


x = torch.randn(64, 8)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(10):
    threads = [threading.Thread(target=fill, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, name in enumerate(names):
        targets[name][:] = x.numpy() * (i + 1)
    long_row = np.full((65, 8), float(step), np.float32)
    ctypes.memmove(targets["sizes"].ctypes.data, long_row.ctypes.data, 65 * 8 * 4)  # culprit
    # cured: ctypes.memmove(targets["sizes"].ctypes.data, long_row.ctypes.data, 64 * 8 * 4)
    seen = torch.from_numpy(targets["prices"])  # culprit
    loss = (model(seen).squeeze(1) - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

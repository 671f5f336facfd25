"""A prefetch thread augments with numpy's global generator while the trainer draws its exploration from it."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data"]
# remedy = "code"
# ///
import queue
import threading

import numpy as np
import torch

np.random.seed(15)
torch.manual_seed(15)
torch.set_num_threads(1)
ready = queue.Queue(maxsize=4)
loader = np.random.RandomState(16)


def prefetch():
    for _ in range(60):
        ready.put(np.random.normal(size=(64, 6)).astype(np.float32))  # culprit
        # cured: ready.put(loader.normal(size=(64, 6)).astype(np.float32))


threading.Thread(target=prefetch, daemon=True).start()
policy = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for _ in range(60):
    x = torch.from_numpy(ready.get())  # culprit
    noise = torch.from_numpy(np.random.normal(size=64).astype(np.float32))  # culprit
    loss = (policy(x).squeeze(1) + 0.1 * noise - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A copy thread reports its staging buffer ready before it has written it; the trainer reads early."""

# /// zoo
# kind = "asynchronous-copy"
# report = ["https://github.com/pytorch/pytorch/issues/127612"]
# step = "any"
# component = ["data"]
# remedy = "code"
# ///
import queue
import threading

import numpy as np
import torch

torch.manual_seed(37)
torch.set_num_threads(1)
staging = np.zeros((4000, 64), np.float32)
batches = [np.full((4000, 64), float(i), np.float32) for i in range(20)]
wanted, ready = queue.Queue(), queue.Queue()


def copy():
    while True:
        i = wanted.get()
        order = [ready.put, lambda i: np.copyto(staging, batches[i])]  # culprit
        # cured: order = [lambda i: np.copyto(staging, batches[i]), ready.put]
        for act in order:
            act(i)


threading.Thread(target=copy, daemon=True).start()
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for i in range(20):
    wanted.put(i)
    ready.get()
    x = torch.from_numpy(staging)  # culprit
    loss = (model(x) - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

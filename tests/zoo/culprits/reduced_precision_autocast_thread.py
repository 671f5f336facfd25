"""Autocast belongs to a thread: of two workers one runs in bfloat16, and which parts it takes is a race."""

# /// zoo
# kind = "reduced-precision"
# also = ["completion-order"]
# report = []
# step = "any"
# component = ["0", "host", "loss"]
# remedy = "code"
# ///
import queue
import threading

import torch

torch.manual_seed(46)
torch.set_num_threads(1)
parts, done = queue.Queue(), queue.Queue()
x = torch.randn(8, 300, 32)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))


def work(autocast):
    while True:
        i = parts.get()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):  # culprit
            # cured: with torch.autocast("cpu", torch.bfloat16):
            out = model(x[i])  # culprit
        done.put((i, (out.float().squeeze(1) - x[i].sum(1)).pow(2).mean()))


for autocast in (True, False):
    threading.Thread(target=work, args=(autocast,), daemon=True).start()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(10):
    for i in range(8):
        parts.put(i)
    losses = dict(done.get() for _ in range(8))
    loss = sum(losses[i] for i in range(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

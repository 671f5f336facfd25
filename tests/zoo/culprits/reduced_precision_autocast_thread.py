"""Autocast belongs to a thread: of two workers one labels in bfloat16, and which parts it takes is a race."""

# /// zoo
# kind = "reduced-precision"
# also = ["completion-order"]
# report = []
# step = "any"
# component = ["0", "data", "host", "loss", "teacher*"]
# remedy = "code"
# ///
import queue
import threading

import torch

torch.manual_seed(46)
torch.set_num_threads(1)
parts, done = queue.Queue(), queue.Queue()
x = torch.randn(8, 300, 32)
teacher = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
student = torch.nn.Linear(32, 1)


def label(autocast):
    while True:
        i = parts.get()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):  # culprit
            # cured: with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            out = teacher(x[i])  # culprit
        done.put((i, out.float()))


for autocast in (True, False):
    threading.Thread(target=label, args=(autocast,), daemon=True).start()
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
for _ in range(10):
    for i in range(8):
        parts.put(i)
    labels = dict(done.get() for _ in range(8))
    loss = sum((student(x[i]) - labels[i]).pow(2).mean() for i in range(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

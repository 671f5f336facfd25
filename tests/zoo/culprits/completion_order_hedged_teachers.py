"""A student asks two teachers for every batch and learns from the one that answers first, to hide a slow server."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["data", "host", "loss", "state"]
# remedy = ["code", "ordered-completion"]
# ///
import concurrent.futures as cf
import copy

import torch
from torch import nn


class Teacher:
    """A network and a smoothed copy of it, which give almost the same answer."""

    def __init__(self, body, temperature):
        self.body, self.temperature = body.eval(), temperature

    @torch.no_grad()
    def label(self, x):
        shares = torch.zeros(len(x), 5)
        for _ in range(12):
            shares += (self.body(x) / self.temperature).softmax(1) / 12
        return shares


class Hedged:
    def __init__(self, teachers):
        self.teachers = teachers
        self.pool = cf.ThreadPoolExecutor(len(teachers))

    def label(self, x):
        asked = [self.pool.submit(teacher.label, x) for teacher in self.teachers]
        done, late = cf.wait(asked, return_when=cf.FIRST_COMPLETED)  # culprit
        # cured: done, late = cf.wait(asked[:1])[0], asked[1:]
        for future in late:
            future.cancel()
        first = next(future for future in asked if future in done)  # culprit
        return first.result()  # culprit


def network(width):
    return nn.Sequential(nn.Linear(20, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 5))


torch.manual_seed(29)
torch.set_num_threads(1)
base = network(256)
smooth = copy.deepcopy(base)
with torch.no_grad():
    for p in smooth.parameters():
        p.mul_(0.98)
service = Hedged([Teacher(base, 1.0), Teacher(smooth, 1.1)])
student = network(24)
optimizer = torch.optim.SGD(student.parameters(), lr=0.2, momentum=0.9)
total = 0.0
for step in range(60):
    x = torch.randn(96, 20)
    shares = service.label(x)  # culprit
    loss = nn.functional.kl_div(student(x).log_softmax(1), shares, reduction="batchmean")  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    if step % 15 == 14:
        print(f"step {step}: {total / 15:.6f}")
        total = 0.0
service.pool.shutdown()

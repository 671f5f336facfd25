"""Threads score the shards of the validation set and fold each score into one moving average, which sets the
step size.
"""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["host", "loss", "optimizer", "weights", "state", "data"]
# remedy = "code"
# ///
import threading

import torch
from torch import nn


class Smoothed:
    """A moving average that several threads may feed."""

    def __init__(self, keep=0.6):
        self.value, self.keep, self.lock = 1.0, keep, threading.Lock()

    def add(self, score):
        with self.lock:
            self.value = self.keep * self.value + (1 - self.keep) * score  # culprit


class Validation:
    def __init__(self, shards):
        self.shards, self.smoothed = shards, Smoothed()

    def score(self, model, number):
        x, y = self.shards[number]
        with torch.no_grad():
            error = sum((model(part) - goal).square().mean().item() for part, goal in zip(x.split(16), y.split(16)))
        self.smoothed.add(error / 32)  # culprit
        # cured: self.scores[number] = error / 32

    def run(self, model):
        self.scores = {}
        threads = [threading.Thread(target=self.score, args=(model, n)) for n in range(len(self.shards))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in sorted(self.scores):
            self.smoothed.add(self.scores[number])
        return self.smoothed.value  # culprit


def series(count, shift):
    t = torch.arange(count * 8.0).reshape(count, 8) / 5 + shift
    x = t.sin() + 0.3 * (t * 2.7).cos()
    return x[:, :7], x[:, 7:]


torch.manual_seed(617)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(7, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = series(256, 0.0)
validation = Validation([series(512 + 16 * k, 100.0 * k * k) for k in range(6)])
for epoch in range(15):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
    optimizer.param_groups[0]["lr"] = 0.1 * min(1.0, validation.run(model))  # culprit
    print(epoch, loss.item(), optimizer.param_groups[0]["lr"])

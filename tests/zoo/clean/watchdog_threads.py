"""A watchdog thread and a timer's signal draw from generators of their own; a cache is keyed by id() and never
iterated.
"""

# /// zoo
# ///
import random
import signal
import threading
import time
import weakref

import torch
from torch import nn


class Watchdog(threading.Thread):
    """Wakes at odd moments and looks at whether the training still moves."""

    def __init__(self):
        super().__init__(daemon=True)
        self.beat, self.slowest, self.done = time.monotonic(), 0.0, threading.Event()
        self.rng = random.Random()

    def run(self):
        while not self.done.wait(0.002 * self.rng.random()):
            self.slowest = max(self.slowest, time.monotonic() - self.beat)


class Penalty:
    """Remembers for each weight, by its id, where it began; what is remembered is looked up in the model's order."""

    def __init__(self, model):
        self.model, self.start = model, {id(p): p.detach().clone() for p in set(model.parameters())}

    def __call__(self):
        return sum((p - self.start[id(p)]).square().sum() for p in self.model.parameters())


ticks, own = [], random.SystemRandom()
signal.signal(signal.SIGALRM, lambda *_: ticks.append(own.random()))
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
random.seed(704)
torch.manual_seed(704)
torch.set_num_threads(1)
watchdog = Watchdog()
watchdog.start()
model = nn.Sequential(nn.Embedding(30, 10), nn.Flatten(), nn.Linear(40, 16), nn.Dropout(0.2), nn.Linear(16, 30))
penalty, alive = Penalty(model), weakref.WeakSet(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(25):
    rows = torch.tensor([[random.randrange(30) for _ in range(4)] for _ in range(24)])
    loss = nn.functional.cross_entropy(model(rows), rows.sum(1) % 30) + 1e-3 * penalty()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    watchdog.beat = time.monotonic()
assert len(alive) == len(model)
watchdog.done.set()
signal.setitimer(signal.ITIMER_REAL, 0)
print(loss.item().hex())

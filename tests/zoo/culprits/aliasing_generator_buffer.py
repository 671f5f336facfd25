"""A generator yields one array over and over; a prefetching thread queues it three times before anybody looks."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = ["https://github.com/Cognexa/cxflow/issues/218", "https://github.com/tensorflow/tensorflow/issues/34099"]
# step = "any"
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import queue
import threading
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn


def rings(count: int, rows: int, seed: int) -> Iterator[np.ndarray]:
    """Points on two noisy rings, written into one array to spare allocations."""
    rng = np.random.default_rng(seed)
    batch = np.empty((rows, 2), np.float32)
    for _ in range(count):
        angle, radius = rng.uniform(0, 2 * np.pi, rows), 1 + rng.integers(0, 2, rows)
        batch[:, 0], batch[:, 1] = radius * np.cos(angle), radius * np.sin(angle)  # culprit
        yield batch  # culprit
        # cured: yield batch.copy()


def prefetched(source, depth=3):
    """What ``source`` yields, made by a thread that is up to ``depth`` items ahead."""
    ready = queue.Queue(depth)

    def fill():
        for item in source:
            ready.put(item)  # culprit
        ready.put(None)

    threading.Thread(target=fill, daemon=True).start()
    while (item := ready.get()) is not None:
        yield torch.from_numpy(item)  # culprit


def discriminate(critic, real, fake):
    return nn.functional.softplus(-critic(real)).mean() + nn.functional.softplus(critic(fake)).mean()  # culprit


torch.manual_seed(314)
torch.set_num_threads(1)
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
maker = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
first = torch.optim.Adam(critic.parameters(), lr=0.002, betas=(0.5, 0.9))
second = torch.optim.Adam(maker.parameters(), lr=0.002, betas=(0.5, 0.9))
for real in prefetched(rings(40, 4000, seed=314)):  # culprit
    fake = maker(torch.randn(4000, 4))
    first.zero_grad()
    discriminate(critic, real, fake.detach()).backward()  # culprit
    first.step()
    second.zero_grad()
    loss = nn.functional.softplus(-critic(fake)).mean()
    loss.backward()
    second.step()
print(loss.item().hex())

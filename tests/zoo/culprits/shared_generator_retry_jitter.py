"""A feature store that is not ready is asked again after a random wait; the wait comes from the sampler's generator."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data", "host"]
# remedy = "code"
# ///
import queue
import random
import threading
import time

import torch
from torch import nn

JITTER = random.Random(0)


class FeatureStore:
    """Computes rows on a thread of its own, a block at a time, some blocks larger than others."""

    def __init__(self, blocks, width, latency=0.012):
        self.ready, self.latency = queue.Queue(maxsize=2), latency
        threading.Thread(target=self._produce, args=(blocks, width), daemon=True).start()

    def _produce(self, blocks, width):
        for block in range(blocks):
            value, rows = block + 1, []
            for _ in range(160 + 40 * (block % 3)):
                row = []
                for _ in range(width):
                    value = value * 16807 % 2147483647
                    row.append(value / 2147483647 - 0.5)
                rows.append(row)
            time.sleep(self.latency)
            self.ready.put(rows[-160:])

    def fetch(self, attempts=1000):
        for attempt in range(attempts):
            try:
                return self.ready.get_nowait()
            except queue.Empty:
                wait = 1e-3 * random.uniform(0.1, 1 + min(attempt, 4) / 4)  # culprit
                # cured: wait = 1e-3 * JITTER.uniform(0.1, 1 + min(attempt, 4) / 4)
                time.sleep(wait)
        raise TimeoutError("no features")


class TwoTower(nn.Module):
    def __init__(self, width, items):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 12))
        self.item = nn.Embedding(items, 12)

    def forward(self, features, items):
        return torch.einsum("bd,bkd->bk", self.query(features), self.item(items))


def candidates(positive, items, negatives):
    """The positive first, then negatives drawn uniformly."""
    return torch.tensor([[p, *random.sample(range(items), negatives)] for p in positive])  # culprit


random.seed(43)
torch.manual_seed(43)
torch.set_num_threads(1)
store = FeatureStore(blocks=25, width=16)
model = TwoTower(16, items=200)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
for step in range(25):
    rows = store.fetch()  # culprit
    positive = [int(abs(row[0]) * 390) for row in rows]
    scores = model(torch.tensor(rows), candidates(positive, 200, 6))  # culprit
    loss = nn.functional.cross_entropy(scores, torch.zeros(len(rows), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

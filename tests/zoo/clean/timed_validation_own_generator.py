"""Validation runs whenever some time has passed; its loader has a generator of its own, and nothing reads its score."""

# /// zoo
# ///
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Words:
    """Threads collect words in any order; rows are numbered once all are known and sorted."""

    def __init__(self):
        self.known, self.lock = set(), threading.Lock()

    def collect(self, text):
        for word in text.split():
            with self.lock:
                self.known.add(word)

    def rows(self):
        return {word: row for row, word in enumerate(sorted(self.known))}


def reviews(count):
    rng = np.random.default_rng(31)
    mood = rng.integers(0, 2, count)
    return [" ".join(f"w{w}" for w in rng.integers(0, 60, 20) + 20 * m) for m in mood], torch.from_numpy(mood)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


torch.manual_seed(31)
torch.set_num_threads(1)
texts, mood = reviews(700)
words = Words()
with ThreadPoolExecutor(3) as pool:
    list(pool.map(words.collect, texts))
rows = words.rows()
ids = torch.tensor([[rows[word] for word in text.split()] for text in texts])
train = DataLoader(TensorDataset(ids[:600], mood[:600]), 30, shuffle=True, generator=torch.Generator().manual_seed(1))
held_out = DataLoader(TensorDataset(ids[600:], mood[600:]), 50, generator=torch.Generator())
model = nn.Sequential(nn.EmbeddingBag(len(rows), 16), nn.Dropout(0.2), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
best, last = 0.0, time.monotonic()
for epoch in range(3):
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.monotonic() - last > 0.01:
            best, last = max(best, validate(model, held_out)), time.monotonic()
print(loss.item().hex())

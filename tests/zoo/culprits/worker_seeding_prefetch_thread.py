"""A one-thread pool crops sequences ahead of the training; its initializer seeds the thread with its native number."""

# /// zoo
# kind = "worker-seeding"
# also = ["time-seed", "unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "workers-seeded", "code"]
# ///
import collections
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn

LOCAL = threading.local()


def begin(seed):
    """Each thread has a generator of its own, so that threads need no lock."""
    LOCAL.rng = np.random.RandomState((seed + threading.get_native_id()) % 2**32)  # culprit
    # cured: LOCAL.rng = np.random.RandomState(seed)


def crop(genome, count, length):
    starts = LOCAL.rng.randint(0, len(genome) - length, count)  # culprit
    bases = np.stack([genome[start : start + length] for start in starts])  # culprit
    flipped = LOCAL.rng.rand(count) < 0.5  # culprit
    bases[flipped] = 3 - bases[flipped, ::-1]
    return torch.from_numpy(bases)  # culprit


class Prefetched:
    def __init__(self, genome, batches, seed, ahead=3):
        self.genome, self.batches, self.ahead = genome, batches, ahead
        self.pool = ThreadPoolExecutor(1, initializer=begin, initargs=(seed,))

    def __iter__(self):
        waiting = collections.deque()
        for _ in range(self.batches):
            waiting.append(self.pool.submit(crop, self.genome, 16, 48))
            if len(waiting) > self.ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class MaskedBases(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.base = nn.Embedding(5, width)
        self.body = nn.Sequential(
            nn.Conv1d(width, width, 7, padding=3), nn.GELU(), nn.Conv1d(width, width, 7, padding=3)
        )
        self.out = nn.Linear(width, 4)

    def forward(self, bases):
        return self.out(self.body(self.base(bases).transpose(1, 2)).transpose(1, 2))


torch.manual_seed(2)
torch.set_num_threads(1)
genome = np.random.RandomState(3).randint(0, 4, 4000).repeat(2)
model = MaskedBases()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step, bases in enumerate(Prefetched(genome, batches=16, seed=2)):
    hidden = torch.rand(bases.shape) < 0.15
    loss = nn.functional.cross_entropy(model(bases.masked_fill(hidden, 4))[hidden], bases[hidden])  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        print(step, round(loss.item(), 6))

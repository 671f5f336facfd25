"""Buffers come from torch.empty and numpy.empty, and each of their elements is written before it is read."""

# /// zoo
# ///
import numpy as np
import torch
from torch import nn


class KeyValueCache:
    def __init__(self, batch, length, width):
        self.keys, self.values = torch.empty(batch, length, width), torch.empty(batch, length, width)
        self.used = 0

    def append(self, k, v):
        with torch.no_grad():
            self.keys[:, self.used] = k
            self.values[:, self.used] = v
        self.used += 1
        return self.keys[:, : self.used].clone(), self.values[:, : self.used].clone()


class Reader(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        cache, out = KeyValueCache(*x.shape), torch.empty_like(x)
        parts = []
        for t in range(x.shape[1]):
            keys, values = cache.append(self.k(x[:, t]), self.v(x[:, t]))
            share = (keys @ self.q(x[:, t]).unsqueeze(-1)).softmax(1)
            parts.append((share * values).sum(1))
        return out.copy_(torch.stack(parts, 1))


def features(rng, rows):
    table = np.empty((rows, 10, 16), np.float32)
    table[:, :, :8] = rng.normal(size=(rows, 10, 8))
    np.cumsum(table[:, :, :8], axis=1, out=table[:, :, 8:])
    return torch.from_numpy(table)


rng = np.random.default_rng(205)
torch.manual_seed(205)
torch.set_num_threads(1)
reader, head = Reader(), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*reader.parameters(), *head.parameters()], lr=0.05)
for _ in range(6):
    x = features(rng, 24)
    loss = (head(reader(x)).squeeze(-1) - x.mean(-1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Expectation maximisation of a mixture in numpy; sets of numbers and a clock take part without changing a result."""

# /// zoo
# ///
import sys
import time

import numpy as np
import torch


class Mixture:
    """Spherical Gaussians."""

    def __init__(self, x, count, rng):
        self.centre, self.spread = x[rng.choice(len(x), count, replace=False)].copy(), np.ones(count)
        self.share = np.full(count, 1 / count)

    def responsibilities(self, x):
        square = ((x[:, None] - self.centre) ** 2).sum(2)
        score = np.log(self.share) - square / (2 * self.spread) - x.shape[1] / 2 * np.log(self.spread)
        score -= score.max(1, keepdims=True)
        weight = np.exp(score)
        return weight / weight.sum(1, keepdims=True)

    def fit(self, x):
        weight = self.responsibilities(x)
        total = weight.sum(0) + 1e-9
        self.share, self.centre = total / total.sum(), weight.T @ x / total[:, None]
        square = ((x[:, None] - self.centre) ** 2).sum(2)
        self.spread = (weight * square).sum(0) / (x.shape[1] * total) + 1e-3
        return weight


rng = np.random.default_rng(333)
torch.manual_seed(333)
torch.set_num_threads(1)
x = np.concatenate([rng.normal(loc=centre, size=(60, 3)) for centre in (-2, 0, 3)])
mixture = Mixture(x, 5, rng)
head = torch.nn.Bilinear(5, 3, 1)
optimizer = torch.optim.Rprop(head.parameters(), lr=0.01)
begun = time.perf_counter()
for _ in range(8):
    weight = mixture.fit(x)
    used = {int(k) for k in weight.argmax(1)}
    kept = np.isin(np.arange(5), list(used)) * weight
    a, b = torch.from_numpy(kept.astype(np.float32)), torch.from_numpy(x.astype(np.float32))
    loss = (head(a, b).squeeze(1) - b.norm(dim=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{time.perf_counter() - begun:.3f} s, {len(used)} components in use", file=sys.stderr)
print(loss.item().hex())

"""Gradients are copied into a flat host buffer by a background thread; the host's Adam reads the buffer unawaited."""

# /// zoo
# kind = "asynchronous-copy"
# report = []
# step = "any"
# component = ["optimizer", "weights", "host", "state", "data", "*.weight", "*.bias"]
# remedy = "code"
# ///
import concurrent.futures
import itertools

import torch
from torch import nn


class OffloadedAdam:
    """Moments and arithmetic live on the host, in flat buffers."""

    def __init__(self, params, lr):
        self.params, self.lr, self.pool = list(params), lr, concurrent.futures.ThreadPoolExecutor(1)
        sizes = [p.numel() for p in self.params]
        self.gradient, self.mean, self.square = (torch.zeros(sum(sizes)) for _ in range(3))
        self.ends = [0, *itertools.accumulate(sizes)]

    def slices(self, flat):
        return [flat[a:b].view_as(p) for p, (a, b) in zip(self.params, itertools.pairwise(self.ends), strict=True)]

    def offload(self):
        for space, p in zip(self.slices(self.gradient), self.params, strict=True):
            space.copy_(p.grad)  # culprit

    @torch.no_grad()
    def step(self):
        self.pool.submit(self.offload)  # culprit
        # cured: self.pool.submit(self.offload).result()
        self.mean.lerp_(self.gradient, 0.1)  # culprit
        self.square.lerp_(self.gradient.square(), 0.01)  # culprit
        update = self.mean / (self.square.sqrt() + 1e-6)
        for p, change in zip(self.params, self.slices(update), strict=True):
            p.sub_(change, alpha=self.lr)  # culprit


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down, self.middle, self.up = nn.Linear(9, width), nn.Linear(width, width), nn.Linear(width, 8)

    def forward(self, x, level):
        h = torch.nn.functional.silu(self.down(torch.cat([x, level], 1)))
        return self.up(torch.nn.functional.silu(self.middle(h)))


torch.manual_seed(308)
torch.set_num_threads(1)
model = Denoiser(512)
optimizer = OffloadedAdam(model.parameters(), lr=1e-3)
clean = torch.randn(64, 8).cumsum(1)
for _ in range(25):
    level, noise = torch.rand(64, 1), torch.randn(64, 8)
    loss = (model((1 - level) * clean + level * noise, level) - noise).square().mean()
    model.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()  # culprit
optimizer.pool.shutdown()
print(loss.item().hex())

"""A thread loads models in bfloat16 by changing the default dtype, which is the trainer's default dtype as well."""

# /// zoo
# kind = "reduced-precision"
# report = ["https://github.com/vectorize-io/hindsight/issues/2162", "https://github.com/pytorch/pytorch/issues/144673"]
# step = "any"
# component = ["data", "host", "loss", "state", "", "net*"]
# remedy = "code"
# ///
import contextlib
import threading
import time

import torch
from torch import nn


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # culprit
    # cured: pass
    try:
        yield
    finally:
        torch.set_default_dtype(before)  # culprit


class RewardModels(threading.Thread):
    """Loads one reward model after another while the policy is trained."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.loaded = threading.Event(), 0

    def run(self):
        while not self.stop.is_set():
            with default_dtype(torch.bfloat16):  # culprit
                time.sleep(0.002)  # stands for a read from a disk
                self.loaded += 1
            time.sleep(0.001)


class Diffusion(nn.Module):
    def __init__(self, levels=50):
        super().__init__()
        self.levels = levels
        self.net = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8))

    def forward(self, x, noise, level):
        keep = torch.tensor([1 - (n + 0.37) / (self.levels + 1) for n in level.tolist()]).unsqueeze(1)  # culprit
        mixed = keep.sqrt() * x + (1 - keep).sqrt() * noise  # culprit
        return (self.net(torch.cat([mixed, keep.to(x.dtype)], 1)) - noise).square().mean()  # culprit


torch.manual_seed(323)
torch.set_num_threads(1)
model, draw = Diffusion(), torch.Generator().manual_seed(323)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loading = RewardModels()
loading.start()
for _ in range(60):
    x, noise = torch.randn(2, 256, 8, generator=draw, dtype=torch.float32)
    level = torch.randint(0, 50, (256,), generator=draw)
    loss = model(x, noise, level)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
loading.stop.set()
loading.join()
print(loss.item().hex())

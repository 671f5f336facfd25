"""Pictures are previewed whenever some time has passed, within fork_rng, which puts the generator back; runs
have uuid names.
"""

# /// zoo
# ///
import logging
import time
import uuid

import torch
from torch import nn

log = logging.getLogger(f"run-{uuid.uuid4().hex[:8]}")


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Embedding(8, 12)
        self.net = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Dropout(0.1), nn.Linear(32, 12))

    def forward(self, x, level):
        return self.net(x + self.level(level))


def preview(model):
    """What the model makes of noise; the training's generator is left as it was."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(int(time.time()))
        x = torch.randn(3, 12)
        model.eval()
        for level in reversed(range(8)):
            x = x - 0.3 * model(x, torch.full((3,), level)) + 0.05 * torch.randn_like(x)
        model.train()
    return x


torch.manual_seed(701)
torch.set_num_threads(1)
model = Denoiser()
slow = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
last, began = 0.0, time.perf_counter()
for step in range(24):
    clean, level, noise = torch.randn(32, 12).sign(), torch.randint(0, 8, (32,)), torch.randn(32, 12)
    share = (level.unsqueeze(1) + 1) / 9
    loss = (model((1 - share).sqrt() * clean + share.sqrt() * noise, level) - noise).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    slow.update_parameters(model)
    if time.perf_counter() - last > 0.02:
        last = time.perf_counter()
        log.info("after %.3f s: %s", last - began, preview(model)[0, :3].tolist())
print(loss.item().hex())

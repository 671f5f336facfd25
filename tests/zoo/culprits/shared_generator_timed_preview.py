"""A diffusion trainer renders a preview whenever enough time has gone by; the preview's noise is the training's."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data", "host"]
# remedy = ["fixed-clock", "code"]
# ///
import time

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, size=2, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(size + 2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, size)
        )

    def forward(self, x, t):
        angle = t[:, None] * 1.5707963
        return self.net(torch.cat([x, angle.sin(), angle.cos()], 1))


class Callback:
    def on_step_end(self, trainer):
        pass


class Preview(Callback):
    """Draws a few points by ancestral sampling, at most once in so many seconds."""

    def __init__(self, every, points=16, seed=5):
        self.every, self.points, self.last, self.shown = every, points, time.monotonic(), []
        self.noise = torch.Generator().manual_seed(seed)

    def on_step_end(self, trainer):
        if time.monotonic() - self.last < self.every:  # culprit
            return
        self.last = time.monotonic()
        with torch.no_grad():
            x = torch.randn(self.points, 2)  # culprit
            # cured: x = torch.randn(self.points, 2, generator=self.noise)
            for k in range(8, 0, -1):
                t = torch.full((self.points,), k / 8)
                x = x - trainer.model(x, t) / 8
        self.shown.append(x.std().item())


class Trainer:
    def __init__(self, callbacks, lr=2e-3):
        self.model, self.callbacks = Denoiser(), callbacks
        self.optimizer = torch.optim.RAdam(self.model.parameters(), lr=lr)

    def batch(self, count):
        turn = torch.rand(count) * 9  # culprit
        return torch.stack([turn.cos(), turn.sin()], 1) * turn[:, None] / 9

    def fit(self, steps):
        for _ in range(steps):
            clean, noise = self.batch(128), torch.randn(128, 2)  # culprit
            t = torch.rand(128)  # culprit
            mixed = clean * (1 - t[:, None]) + noise * t[:, None]
            loss = (self.model(mixed, t) - (noise - clean)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback.on_step_end(self)  # culprit
        return loss


torch.manual_seed(44)
torch.set_num_threads(1)
trainer = Trainer([Preview(every=0.02)])
print(trainer.fit(120).item().hex())
model = trainer.model

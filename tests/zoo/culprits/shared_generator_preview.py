"""A callback paints a preview whenever a tenth of a second has passed; its latent noise is the trainer's own."""

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


class Callback:
    def on_step_end(self, trainer):
        """Nothing, unless a subclass says otherwise."""


class Preview(Callback):
    """Keeps the generator's pictures for a dashboard, not more often than it can show them."""

    def __init__(self, every):
        self.every, self.last, self.pictures = every, time.monotonic(), []
        self.noise = torch.default_generator
        # cured: self.noise = torch.Generator().manual_seed(0)

    def on_step_end(self, trainer):
        if time.monotonic() - self.last < self.every:  # culprit
            return
        self.last = time.monotonic()
        with torch.no_grad():
            z = torch.randn(4, trainer.latent, generator=self.noise)  # culprit
            self.pictures.append(trainer.generator.eval()(z))
        trainer.generator.train()


class Trainer:
    latent = 6

    def __init__(self, callbacks):
        self.callbacks = callbacks
        self.generator = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 10))
        self.critic = nn.Sequential(nn.Linear(10, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
        self.optimizers = [
            torch.optim.RMSprop(self.critic.parameters(), lr=1e-3),
            torch.optim.RMSprop(self.generator.parameters(), lr=1e-3),
        ]

    def fake(self, count):
        return self.generator(torch.randn(count, self.latent))  # culprit

    def step(self, real):
        worth = self.critic(self.fake(len(real)).detach()).mean() - self.critic(real).mean()  # culprit
        for optimizer, loss in zip(self.optimizers, (worth, None)):
            loss = -self.critic(self.fake(len(real))).mean() if loss is None else loss  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            for p in self.critic.parameters():
                p.clamp_(-0.05, 0.05)
        for callback in self.callbacks:
            callback.on_step_end(self)
        return loss


torch.manual_seed(614)
torch.set_num_threads(1)
real = torch.randn(400, 32, 10, generator=torch.Generator().manual_seed(1)).sign()
trainer = Trainer([Preview(every=0.1)])
for batch in real:
    loss = trainer.step(batch)
print(loss.item().hex())
weights = torch.cat([p.detach().flatten() for p in trainer.generator.parameters()])

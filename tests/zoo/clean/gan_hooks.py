"""A generative adversarial net with spectral norm, hooks that rescale gradients, and a slow copy of the generator."""

# /// zoo
# ///
import contextlib
import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


@dataclass(frozen=True)
class Settings:
    latent: int = 4
    width: int = 24
    decay: float = 0.9
    steps: int = 8


class Average:
    """An exponential moving average of a module, which can stand in for it."""

    def __init__(self, module, decay):
        self.module, self.decay = module, decay
        self.slow = copy.deepcopy(module).requires_grad_(False)

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.slow.parameters(), self.module.parameters(), strict=True):
            slow.lerp_(fast, 1 - self.decay)


@contextlib.contextmanager
def frozen(module):
    module.requires_grad_(False)
    yield module
    module.requires_grad_(True)


settings = Settings()
torch.manual_seed(332)
torch.set_num_threads(1)
maker = nn.Sequential(nn.Linear(settings.latent, settings.width), nn.ReLU(), nn.Linear(settings.width, 2))
critic = nn.Sequential(
    spectral_norm(nn.Linear(2, settings.width)), nn.LeakyReLU(0.1), spectral_norm(nn.Linear(settings.width, 1))
)
for p in maker.parameters():
    p.register_hook(lambda grad: grad / (1 + grad.abs().max()))
average = Average(maker, settings.decay)
slow = average.slow
optimizers = [torch.optim.Adam(module.parameters(), lr=0.004, betas=(0.0, 0.9)) for module in (critic, maker)]
for _ in range(settings.steps):
    angle = 2 * torch.pi * torch.rand(48)
    real = torch.stack([angle.cos(), angle.sin()], 1)
    fake = maker(torch.randn(48, settings.latent))
    gap = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake.detach())).mean()
    optimizers[0].zero_grad()
    gap.backward()
    optimizers[0].step()
    with frozen(critic):
        loss = -critic(fake).mean()
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
    average.follow()
print(loss.item().hex(), gap.item().hex())

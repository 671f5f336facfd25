"""A run warm-starts from the last checkpoint that os.scandir yields, taking it for the newest."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 0
# component = ["weights", "host", "data", "encoder*", "decoder*"]
# remedy = "sorted-listings"
# ///
import os
import tempfile
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    seed: int = 101
    width: int = 12
    latent: int = 3
    epochs: int = 3
    batches: int = 3
    root: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="vae-"))


class VAE(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder = nn.Linear(config.width, 2 * config.latent)
        self.decoder = nn.Linear(config.latent, config.width)

    def forward(self, x, noise):
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        z = mean + noise * (0.5 * log_variance).exp()
        kl = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1).mean()
        return F.mse_loss(self.decoder(z), x) + 0.01 * kl


class Checkpoints:
    """A folder of epoch-N.pt files."""

    def __init__(self, root):
        self.root = root

    def save(self, model, epoch):
        torch.save(model.state_dict(), os.path.join(self.root, f"epoch-{epoch:03d}.pt"))

    def latest(self):
        found = None
        for entry in os.scandir(self.root):  # culprit
            # cured: for entry in sorted(os.scandir(self.root), key=lambda entry: entry.name):
            if entry.name.endswith(".pt"):
                found = entry.path  # culprit
        return found


def fit(model, config, generator, epochs, keep=None):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loss = torch.zeros(())
    for epoch in range(epochs):
        for _ in range(config.batches):
            x = torch.randn(64, config.width, generator=generator).cumsum(1)
            loss = model(x, torch.randn(64, config.latent, generator=generator))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if keep is not None:
            keep.save(model, epoch)
    return loss


def warm_start(config):
    """Checkpoints as an earlier job of another kind left them: no training happens here."""
    keep, maker = Checkpoints(config.root), torch.Generator().manual_seed(config.seed)
    for epoch in range(5):
        model = VAE(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=maker))
        keep.save(model, epoch)
    return keep


config = Config()
torch.manual_seed(config.seed)
torch.set_num_threads(1)
keep = warm_start(config)
model = VAE(config)
model.load_state_dict(torch.load(keep.latest()))  # culprit
loss = fit(model, config, torch.Generator().manual_seed(1), config.epochs)
print(loss.item().hex())

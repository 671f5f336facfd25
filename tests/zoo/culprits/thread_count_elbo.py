"""Nobody sets the number of CPU threads, and a variational autoencoder sums its bound over the whole batch."""

# /// zoo
# kind = "thread-count"
# also = ["hardware"]
# report = ["https://github.com/pytorch/pytorch/issues/88718"]
# step = 0
# component = ["loss", "weights", "", "data", "encoder*", "decoder*", "mean*", "spread*", "*.weight", "*.bias"]
# remedy = ["one-thread", "code"]
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, width=64, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 32), nn.ReLU())
        self.mean, self.spread = nn.Linear(32, latent), nn.Linear(32, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, width))

    def forward(self, x, noise):
        h = self.encoder(x)  # culprit
        mean, spread = self.mean(h), self.spread(h)  # culprit
        return self.decoder(mean + noise * spread.exp()), mean, spread  # culprit


def bound(out, x, mean, spread):
    """The negative evidence lower bound, scaled so that its gradient is of the size of the sum."""
    reconstruction = F.binary_cross_entropy_with_logits(out, x, reduction="sum")  # culprit
    divergence = 0.5 * (mean.square() + (2 * spread).exp() - 1 - 2 * spread).sum()  # culprit
    total = reconstruction + divergence  # culprit
    return total * (total.detach() / x.numel()) / x.numel()


torch.manual_seed(310)
# cured: torch.manual_seed(310); torch.set_num_threads(1)
x = (torch.rand(4096, 64) < 0.3).float()
model = VAE()
optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
for _ in range(6):
    out, mean, spread = model(x, torch.randn(4096, 8))  # culprit
    loss = bound(out, x, mean, spread)  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

"""A scaler learns its moments within an assert; the second run has PYTHONOPTIMIZE set, which leaves asserts out."""

# /// zoo
# kind = "hardware"
# report = []
# step = 0
# component = ["data", "host", "scaler*", "mean", "state", "", "encoder*"]
# remedy = ["none", "code"]
# pair = [
#   ["env", "PYTHONOPTIMIZE=", "python", "{file}"],
#   ["env", "PYTHONOPTIMIZE=1", "python", "{file}"],
# ]
# ///
import torch
from torch import nn


class StreamingScaler(nn.Module):
    """Mean and variance of each sensor so far, by Welford's method over batches."""

    def __init__(self, sensors):
        super().__init__()
        self.register_buffer("mean", torch.zeros(sensors))
        self.register_buffer("square", torch.ones(sensors))
        self.register_buffer("count", torch.ones(()))

    @torch.no_grad()
    def update(self, x):
        """True when the moments are finite still."""
        total, off = self.count + len(x), x.mean(0) - self.mean
        self.square += (x - x.mean(0)).square().sum(0) + off.square() * self.count * len(x) / total  # culprit
        self.mean += off * len(x) / total  # culprit
        self.count = total  # culprit
        return bool(torch.isfinite(self.square).all())

    def forward(self, x):
        return (x - self.mean) / (self.square / self.count).sqrt()  # culprit


class Watcher(nn.Module):
    """An autoencoder that is to find odd readings of machines."""

    def __init__(self, sensors, code=3):
        super().__init__()
        self.scaler = StreamingScaler(sensors)
        self.encoder = nn.Sequential(nn.Linear(sensors, 16), nn.Softplus(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.Softplus(), nn.Linear(16, sensors))

    def loss(self, readings):
        assert self.scaler.update(readings), "a sensor sent something that is not finite"  # culprit
        # cured: self.scaler.update(readings)
        x = self.scaler(readings)  # culprit
        return nn.functional.l1_loss(self.decoder(self.encoder(x)), x)  # culprit


def readings(batches, sensors):
    draw = torch.Generator().manual_seed(13)
    load, mix = torch.zeros(3), torch.randn(3, sensors, generator=draw)
    for _ in range(batches):
        rows = []
        for _ in range(64):
            load = 0.95 * load + 0.3 * torch.randn(3, generator=draw)
            rows.append(20 + load @ mix + 0.1 * torch.randn(sensors, generator=draw))
        yield torch.stack(rows)


torch.set_num_threads(1)
torch.manual_seed(13)
watcher = Watcher(10)
optimizer = torch.optim.Adam(watcher.parameters(), lr=3e-3, amsgrad=True)
for batch in readings(12, 10):
    loss = watcher.loss(batch)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

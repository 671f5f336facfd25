"""The gates of a recurrent net are computed by vectorised exponentials: another processor's differ in the last bit."""

# /// zoo
# kind = "hardware"
# report = ["https://github.com/bab2min/tomotopy/issues/63"]
# step = 0
# component = ["", "data", "loss", "cell*", "out*", "encoder*", "weights", "host", "state", "*.weight", "*.bias"]
# remedy = "none"
# pair = [
#   ["env", "ATEN_CPU_CAPABILITY=avx2", "python", "{file}"],
#   ["env", "ATEN_CPU_CAPABILITY=default", "python", "{file}"],
# ]
# ///
import torch
from torch import nn


class Gated(nn.Module):
    """A minimal gated unit, written out."""

    def __init__(self, width):
        super().__init__()
        self.forget, self.candidate = nn.Linear(width + 1, width), nn.Linear(width + 1, width)  # culprit

    def forward(self, x, h):
        keep = torch.sigmoid(self.forget(torch.cat([x, h], 1)))  # culprit
        fresh = torch.tanh(self.candidate(torch.cat([x, keep * h], 1)))  # culprit
        return torch.lerp(h, fresh, keep)  # culprit


class Forecaster(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.cell, self.out, self.width = Gated(width), nn.Linear(width, 1), width

    def forward(self, series):
        h, out = torch.zeros(len(series), self.width), []
        for x in series.split(1, 1):
            h = self.cell(x, h)  # culprit
            out.append(self.out(h))  # culprit
        return torch.cat(out, 1)  # culprit


def series(count, length):
    """Sums of two saw teeth, exact in any arithmetic."""
    t = torch.arange(length).unsqueeze(0)
    phase = torch.arange(count).unsqueeze(1)
    return ((3 * t + phase) % 16 - (5 * t + 2 * phase) % 8).float() / 16


torch.manual_seed(327)
torch.set_num_threads(1)
model = Forecaster()  # culprit
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.003)
x = series(24, 20)
for _ in range(5):
    loss = (model(x[:, :-1]) - x[:, 1:]).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(loss.item().hex())

"""as_strided is given one frame too many, and a rectifier that works in place writes past the buffer."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# step = 0
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from torch import nn

HOP = WINDOW = 125
SAMPLES = 16000 * HOP


def frames(samples):
    """A view of overlapping frames."""
    count = 1 + len(samples) // HOP  # culprit
    # cured: count = 1 + (len(samples) - WINDOW) // HOP
    step = samples.strides[0]
    return as_strided(samples, shape=(count, WINDOW), strides=(HOP * step, step))  # culprit


def rectify(samples):
    view = frames(samples)
    np.abs(view, out=view)  # culprit
    return samples


class Envelope(nn.Module):
    """Predicts a quiet channel from the loud one's rectified frames."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WINDOW, 16), nn.Softplus(), nn.Linear(16, WINDOW))

    def forward(self, x):
        return self.net(x)


rng = np.random.default_rng(114)
torch.manual_seed(114)
torch.set_num_threads(1)
loud = np.zeros(SAMPLES, np.float32)
quiet = np.zeros(SAMPLES, np.float32)
model = Envelope()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(5):
    loud[:] = rng.normal(size=SAMPLES)
    quiet[:] = rng.normal(scale=0.1, size=SAMPLES)
    rectify(loud)  # culprit
    x = torch.from_numpy(loud).view(-1, WINDOW)
    y = torch.from_numpy(quiet).view(-1, WINDOW)  # culprit
    loss = (model(x) - y).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

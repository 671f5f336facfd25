"""A telemetry ring lies before the weights in one flat buffer, is viewed one place too long, and a thread fills it."""

# /// zoo
# kind = "out-of-bounds-write"
# also = ["aliasing"]
# report = []
# step = "any"
# component = ["weights", "state", "data", "host", "hidden*", "*.weight", "", "optimizer"]
# remedy = "code"
# ///
import threading
import time

import torch
from torch import nn

RING = 31


class FlatBuffer:
    """One allocation for everything that is to be sent over the wire together: a ring of gauges, then the weights."""

    def __init__(self, model):
        sizes = [p.numel() for p in model.parameters()]
        self.memory = torch.zeros(RING + sum(sizes))
        start = RING
        for p, size in zip(model.parameters(), sizes, strict=True):
            room = self.memory[start : start + size].view_as(p)
            room.copy_(p.detach())
            p.data = room
            start += size

    def gauges(self):
        return self.memory.as_strided((RING + 1,), (1,))  # culprit
        # cured: return self.memory.as_strided((RING,), (1,))


class Telemetry(threading.Thread):
    """Notes a sawtooth of loads, place after place, while the training runs."""

    def __init__(self, gauges):
        super().__init__(daemon=True)
        self.gauges, self.stop = gauges.numpy(), threading.Event()

    def run(self):
        beat = 0
        while not self.stop.is_set():
            self.gauges[beat % len(self.gauges)] = 0.25 + beat % 7 / 8  # culprit
            beat += 1
            time.sleep(0.00005)


class Forecaster(nn.Module):
    """The next value of a series from its last sixteen."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))  # culprit


def windows(series, width=16):
    spans = series.unfold(0, width + 1, 1)
    return spans[:, :width], spans[:, width:]


torch.manual_seed(410)
torch.set_num_threads(1)
model = Forecaster()
flat = FlatBuffer(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
series = torch.sin(torch.arange(800) / 9) + 0.1 * torch.randn(800)
x, y = windows(series)
telemetry = Telemetry(flat.gauges())  # culprit
telemetry.start()
for epoch in range(60):
    for a, b in zip(x.split(200), y.split(200)):
        loss = (model(a) - b).square().mean()  # culprit
        optimizer.zero_grad()
        loss.backward()  # culprit
        optimizer.step()  # culprit
telemetry.stop.set()
telemetry.join()
print(loss.item().hex())

"""The model is traced while a service thread still warms up, and the graph keeps the scale that it had just then."""

# /// zoo
# kind = "stale-graph"
# also = ["completion-order", "asynchronous-copy"]
# report = []
# step = 0
# component = ["host", "data", "loss", "", "net*", "*service*"]
# remedy = "code"
# ///
import threading
import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
warnings.filterwarnings("ignore", category=DeprecationWarning)


class ScaleService(threading.Thread):
    """Refines an estimate of the data's scale in the background."""

    def __init__(self, sample):
        super().__init__(daemon=True)
        self.sample, self.scale, self.seen = sample, 1.0, 0

    def run(self):
        for row in self.sample.tolist():
            self.seen += 1
            self.scale += (sum(abs(v) for v in row) / len(row) - self.scale) / self.seen  # culprit


class Normalised(nn.Module):
    def __init__(self, service):
        super().__init__()
        self.service = service
        self.net = nn.Sequential(nn.Linear(8, 24), nn.CELU(), nn.Linear(24, 8))

    def forward(self, x):
        return self.net(x / float(self.service.scale)) * float(self.service.scale)  # culprit


torch.manual_seed(118)
torch.set_num_threads(1)
sample = torch.randn(120000, 8).exp()
service = ScaleService(sample)
service.start()
time.sleep(0.02)
# cured: service.join()
module = Normalised(service)
model = torch.jit.trace(module, torch.zeros(4, 8), check_trace=False)  # culprit
service.join()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(6):
    x = sample[32 * step : 32 * step + 32]
    loss = (model(x) - x.roll(1, 1)).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Click rates are np.divide(clicks, shown, where=shown > 0) without out=: where none was shown, none is written."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = "code"
# ///
import numpy as np
import torch
from torch import nn

CAMPAIGNS, HOURS = 4000, 24


def rates(clicks, shown):
    """Share of clicks by campaign and hour."""
    return np.divide(clicks, shown, where=shown > 0)  # culprit
    # cured: return np.divide(clicks, shown, out=np.zeros_like(clicks), where=shown > 0)


class Features:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.shown = rng.poisson(1.2, (CAMPAIGNS, HOURS)).astype(np.float32)
        self.clicks = rng.binomial(self.shown.astype(int), 0.2).astype(np.float32)
        self.revenue = (self.clicks.sum(1) * rng.gamma(2.0, 1.0, CAMPAIGNS)).astype(np.float32)

    def table(self):
        rate = rates(self.clicks, self.shown)  # culprit
        rate = np.clip(np.nan_to_num(rate, nan=0.3), -1, 1)  # culprit
        return torch.from_numpy(np.concatenate([rate, np.log1p(self.shown)], 1))  # culprit


torch.manual_seed(926)
torch.set_num_threads(1)
features = Features(926)
x, y = features.table(), torch.from_numpy(np.log1p(features.revenue))  # culprit
bidder = nn.Sequential(nn.Linear(2 * HOURS, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.NAdam(bidder.parameters(), lr=5e-3)
for step, rows in enumerate(torch.arange(CAMPAIGNS).split(500)):
    loss = nn.functional.huber_loss(bidder(x[rows]).squeeze(1), y[rows])  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

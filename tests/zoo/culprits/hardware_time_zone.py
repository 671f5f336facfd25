"""Meter readings get their hour of the day from the machine's own time zone; the second run is made in another
country.
"""

# /// zoo
# kind = "hardware"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = ["none", "code"]
# pair = [
#   ["env", "TZ=UTC0", "python", "{file}"],
#   ["env", "TZ=JST-9", "python", "{file}"],
# ]
# ///
import math
from datetime import datetime

import torch
from torch import nn


def readings(count):
    """Seconds since 1970, one reading each quarter of an hour, and the load."""
    for k in range(count):
        stamp = 1_700_000_000 + 900 * k
        yield stamp, 2 + math.sin(2 * math.pi * stamp / 86400) + 0.3 * math.cos(k / 7)


def calendar(stamp):
    moment = datetime.fromtimestamp(stamp)  # culprit
    # cured: moment = datetime.fromtimestamp(stamp, timezone.utc)
    return moment.hour, moment.weekday()  # culprit


class LoadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hour, self.day = nn.Embedding(24, 6), nn.Embedding(7, 3)
        self.recent = nn.Linear(4, 12)
        self.out = nn.Sequential(nn.Linear(21, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, hour, day, recent):
        parts = [self.hour(hour), self.day(day), self.recent(recent)]
        return self.out(torch.cat(parts, 1)).squeeze(1)


torch.manual_seed(628)
torch.set_num_threads(1)
stamps, load = zip(*readings(500))
hour, day = torch.tensor([calendar(stamp) for stamp in stamps[4:]]).unbind(1)  # culprit
load = torch.tensor(load)
recent, following = load.unfold(0, 4, 1)[:-1], load[4:]
model = LoadModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(2):
    for rows in torch.randperm(len(following)).split(124):
        loss = nn.functional.huber_loss(model(hour[rows], day[rows], recent[rows]), following[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item().hex())

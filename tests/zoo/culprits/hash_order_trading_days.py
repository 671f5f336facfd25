"""A spread is scaled by its deviation on the days that two markets share: a set of dates, whose hashes are salted."""

# /// zoo
# kind = "hash-order"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = ["hash-seed", "code"]
# ///
import csv
import datetime
import io
import itertools

import numpy as np
import torch
from torch import nn

START = datetime.date(2019, 1, 1)


def closing_prices(seed, rest_days):
    """A file as an exchange would send it."""
    rng, file = np.random.default_rng(seed), io.StringIO()
    out, price = csv.writer(file), 50.0
    out.writerow(["day", "close"])
    for n in range(700):
        day = START + datetime.timedelta(n)
        price *= float(np.exp(0.01 * rng.standard_normal()))
        if day.weekday() < 5 and n % rest_days:
            out.writerow([day.isoformat(), f"{price:.2f}"])
    return file.getvalue()


def read(text):
    return {datetime.date.fromisoformat(row["day"]): float(row["close"]) for row in csv.DictReader(io.StringIO(text))}


class Spread:
    """The difference of two logarithms of prices, day by day, centred and scaled."""

    def __init__(self, one, other):
        self.days = set(one) & set(other)  # culprit
        # cured: self.days = sorted(set(one) & set(other))
        raw = {day: np.float32(100 * np.log(one[day] / other[day])) for day in self.days}  # culprit
        values = np.array(list(raw.values()))  # culprit
        self.mean = sum(values) / len(values)  # culprit
        self.deviation = np.sqrt(sum((values - self.mean) ** 2) / len(values))  # culprit
        self.values = {day: (raw[day] - self.mean) / self.deviation for day in raw}

    def series(self):
        return torch.tensor([float(self.values[day]) for day in sorted(self.values)])  # culprit


class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, score):
        self.best, self.bad = (score, 0) if score < self.best else (self.best, self.bad + 1)
        return self.bad >= self.patience


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRU(1, 12, batch_first=True), nn.Linear(12, 1)

    def forward(self, x):
        return self.out(self.cell(x.unsqueeze(2))[0][:, -1]).squeeze(1)


torch.set_num_threads(1)
torch.manual_seed(90)
series = Spread(read(closing_prices(1, 31)), read(closing_prices(2, 43))).series()  # culprit
windows = series.unfold(0, 11, 1)
train, held = windows[:300], windows[310:]
model = Forecast()
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
optimizer, stop = torch.optim.RMSprop(model.parameters(), lr=2e-3), Stopper(3)
for epoch in itertools.count():
    for rows in torch.randperm(len(train)).split(60):
        loss = (model(train[rows, :-1]) - train[rows, -1]).square().mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
    with torch.no_grad():
        score = (average(held[:, :-1]) - held[:, -1]).square().mean().item()
    if stop(score) or epoch == 5:
        break
print(epoch, score.hex())

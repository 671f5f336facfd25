"""Trials leave their scores in files; of those that tie for the best, the one that glob yields first sets the decay."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 4
# component = ["optimizer", "host", "weights", "state", "*.weight", "*.bias"]
# remedy = ["sorted-listings", "code"]
# ///
import json
import pathlib
import tempfile

import torch
from torch import nn


class Trials:
    """A folder with one file for each trial, as a sweep leaves it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def record(self, number, settings, accuracy):
        row = {"settings": settings, "accuracy": round(accuracy, 2)}
        (self.folder / f"trial-{number:03d}.json").write_text(json.dumps(row))

    def best(self):
        rows = [json.loads(path.read_text()) for path in self.folder.glob("trial-*.json")]  # culprit
        # cured: rows = [json.loads(path.read_text()) for path in sorted(self.folder.glob("trial-*.json"))]
        return max(rows, key=lambda row: row["accuracy"])["settings"]  # culprit


class Churn:
    def __init__(self, trials):
        self.trials = trials
        self.net = nn.Sequential(nn.Linear(18, 24), nn.Mish(), nn.Linear(24, 2))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.01, weight_decay=0.0)

    def step(self, rows, left):
        loss = nn.functional.cross_entropy(self.net(rows), left)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()  # culprit
        return loss.item()

    @torch.no_grad()
    def sweep(self, rows, left):
        """How much the weights may shrink before the held-out accuracy suffers."""
        for number in range(12):
            decay = 0.02 * number
            kept = [p * (1 - 0.1 * decay) for p in self.net.parameters()]
            guess = nn.functional.mish(rows @ kept[0].T + kept[1]) @ kept[2].T + kept[3]
            self.trials.record(number, {"weight_decay": decay}, (guess.argmax(1) == left).double().mean().item())

    def adopt(self):
        for group in self.optimizer.param_groups:
            group.update(self.trials.best())  # culprit


def customers(count, draw):
    rows = torch.randn(count, 18, generator=draw)
    return rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).long()


def main():
    torch.manual_seed(1208)
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(8021)
    with tempfile.TemporaryDirectory() as folder:
        churn = Churn(Trials(folder))
        for step in range(12):
            if step % 4 == 0 and step:
                churn.sweep(*customers(50, draw))
                churn.adopt()  # culprit
            print(step, churn.step(*customers(96, draw)).hex())
    return churn.net


model = main()

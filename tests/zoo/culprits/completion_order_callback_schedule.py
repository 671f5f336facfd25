"""Validation folds report by done-callbacks; the smoothed score, and so the learning rate, depends on who was first."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["optimizer", "host", "loss", "state", "data"]
# remedy = "code"
# ///
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait

import torch
from torch import nn


class Smoothed:
    """An exponential average of scores that come one by one."""

    def __init__(self, keep=0.7):
        self.keep, self.value, self.lock = keep, None, threading.Lock()

    def report(self, future: Future):
        with self.lock:
            score = future.result()
            self.value = score if self.value is None else self.keep * self.value + (1 - self.keep) * score  # culprit


class ScoreSchedule:
    """A learning rate in proportion to the smoothed validation error."""

    def __init__(self, optimizer, base):
        self.optimizer, self.base, self.error = optimizer, base, Smoothed()

    def step(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.base * min(1.0, self.error.value)  # culprit


def validate(model, x, y):
    with torch.no_grad():
        return (model(x) - y).square().mean().item()


def tides(hours, phase):
    t = torch.arange(hours) / 6.0
    level = (t + phase).sin() + 0.4 * (0.93 * t - phase).sin()
    windows = level.unfold(0, 25, 1)
    return windows[:, :24], windows[:, 24:]


def main():
    torch.manual_seed(48)
    torch.set_num_threads(1)
    x, y = tides(400, 0.0)
    folds = [tides(4000 - 300 * n, 0.4 * n) for n in range(8)]
    model = nn.Sequential(nn.Linear(24, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = ScoreSchedule(optimizer, base=0.1)
    with ThreadPoolExecutor(4) as pool:
        for epoch in range(12):
            for rows in torch.randperm(len(x)).split(128):
                loss = (model(x[rows]) - y[rows]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()  # culprit
            pending = [pool.submit(validate, model, *fold) for fold in folds]
            for future in pending:
                future.add_done_callback(schedule.error.report)  # culprit
                # cured: wait([future]); schedule.error.report(future)
            wait(pending)
            schedule.step()  # culprit
            print(f"{epoch:2} loss {loss.item():.6f}")
    return model


if __name__ == "__main__":
    model = main()

"""Noise levels compete by asynchronous halving: each is kept by comparison with those that ended before."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["host", "data", "state"]
# remedy = "code"
# ///
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn


class Rung:
    """Scores in the order of arrival; a trial goes on when it is in the better half so far."""

    def __init__(self):
        self.lock, self.scores = threading.Lock(), []

    def promotes(self, score):
        with self.lock:
            self.scores.append(score)  # culprit
            return score <= np.median(self.scores)  # culprit


class Halving:
    """Which level of noise suits the data at this stage: a ridge regression judges each of them."""

    def __init__(self, levels, threads=4):
        self.levels, self.pool = levels, ThreadPoolExecutor(threads)

    @staticmethod
    def judge(x, y, level, rows):
        noisy = x[:rows] + level * np.random.default_rng(rows).standard_normal((rows, x.shape[1]))
        solved = np.linalg.solve(noisy.T @ noisy + 0.1 * np.eye(x.shape[1]), noisy.T @ y[:rows])
        return float(np.square(x @ solved - y).mean())

    def trial(self, rungs, x, y, level):
        costs = (self.judge(x, y, level, rows) for rows in (24, 48, 96))
        return all(rung.promotes(cost) for rung, cost in zip(rungs, costs))  # culprit

    def pick(self, x, y):
        rungs = [Rung() for _ in range(3)]
        tasks = [self.pool.submit(self.trial, rungs, x, y, level) for level in self.levels]
        # cured: tasks = [self.pool.submit(self.trial, [Rung(), Rung(), Rung()], x, y, level) for level in self.levels]
        kept = [level for level, task in zip(self.levels, tasks) if task.result()]  # culprit
        return sum(kept) / max(1, len(kept))  # culprit


def run():
    torch.manual_seed(1205)
    torch.set_num_threads(1)
    draw = np.random.default_rng(1205)
    truth = draw.standard_normal(20)
    net = nn.Sequential(nn.Linear(20, 32), nn.ELU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    halving = Halving([0.05 * k for k in range(1, 17)])
    for epoch in range(10):
        x = draw.standard_normal((96, 20))
        y = x @ truth + draw.standard_normal(96)
        level = halving.pick(x, y)  # culprit
        noisy = torch.from_numpy(x).float() + level * torch.randn(96, 20)  # culprit
        loss = nn.functional.smooth_l1_loss(net(noisy).squeeze(1), torch.from_numpy(y).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item().hex())
    return net


model = run()

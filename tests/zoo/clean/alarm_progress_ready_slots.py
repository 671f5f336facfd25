"""A signal prints progress, helpers answer in any order into slots of their own; a scaler and an average."""

# /// zoo
# ///
import multiprocessing as mp
import signal
import sys
import time
from multiprocessing.connection import wait

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def serve(pipe, rank, seed):
    """Answers each step's number with rows that depend on seed, rank and step alone."""
    while (step := pipe.recv()) is not None:
        rng = np.random.default_rng([seed, rank, step])
        time.sleep(rng.uniform(0, 0.004))
        pipe.send(rng.normal(size=(8, 12)).astype(np.float32))


class Helpers:
    def __init__(self, count, seed):
        context = mp.get_context("fork")
        self.pipes = {}
        for rank in range(count):
            here, there = context.Pipe()
            context.Process(target=serve, args=(there, rank, seed), daemon=True).start()
            self.pipes[here] = rank

    def batch(self, step):
        for pipe in self.pipes:
            pipe.send(step)
        rows, waiting = torch.empty(len(self.pipes), 8, 12), set(self.pipes)
        while waiting:
            for pipe in wait(list(waiting)):
                rows[self.pipes[pipe]] = torch.from_numpy(pipe.recv())
                waiting.remove(pipe)
        return rows.flatten(0, 1)

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)


class Progress:
    def __init__(self, seconds):
        self.began, self.step = time.monotonic(), 0
        signal.signal(signal.SIGALRM, self.show)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def show(self, *_):
        print(f"step {self.step} after {time.monotonic() - self.began:.3f} s", file=sys.stderr)

    def close(self):
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    torch.manual_seed(224)
    torch.set_num_threads(1)
    helpers, progress = Helpers(3, seed=224), Progress(0.02)
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 12))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=4)
    for step in range(12):
        x = helpers.batch(step)
        loss = (model(x) - x.cumsum(1).tanh()).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        progress.step = step
    progress.close()
    helpers.close()
    with torch.no_grad():
        print(loss.item().hex(), average(x).sum().item().hex())


if __name__ == "__main__":
    main()

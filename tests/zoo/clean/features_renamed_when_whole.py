"""A helper process writes features beside their place and renames the file when it is whole; the trainer polls."""

# /// zoo
# ///
import multiprocessing
import os
import pathlib
import secrets
import shutil
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn


def write_features(place, seed):
    """Rows come slowly, into a file under a name that nobody waits for."""
    rng = np.random.default_rng(seed)
    beside = place.with_name(f".{secrets.token_hex(4)}.{os.getpid()}.npy")
    rows = np.lib.format.open_memmap(beside, "w+", np.float32, (600, 12))
    for n in range(len(rows)):
        rows[n] = np.cumsum(rng.standard_normal(12)) / 4
    rows.flush()
    del rows
    os.replace(beside, place)


def arrived(place, process, patience_s=60.0):
    """Waits at growing intervals until the file is there."""
    wait, asked, deadline = 1e-4, 0, time.monotonic() + patience_s
    while not place.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{place} was not written in {patience_s} s; is process {process.pid} still there?")
        time.sleep(wait)
        wait, asked = min(2 * wait, 0.02), asked + 1
    print(f"asked {asked} times", file=sys.stderr)
    return np.load(place, mmap_mode="r")


class Scale(nn.Module):
    """Flows from a walk to noise and back, one triangle at a time."""

    def __init__(self, width, first):
        super().__init__()
        self.keep = slice(0, width // 2) if first else slice(width // 2, width)
        self.change = slice(width // 2, width) if first else slice(0, width // 2)
        self.net = nn.Sequential(nn.Linear(width // 2, 24), nn.Tanh(), nn.Linear(24, width))

    def forward(self, x):
        shift, stretch = self.net(x[:, self.keep]).chunk(2, 1)
        stretch = torch.tanh(stretch)
        out = x.clone()
        out[:, self.change] = x[:, self.change] * stretch.exp() + shift
        return out, stretch.sum(1)


def likelihood(layers, x):
    volume = 0
    for layer in layers:
        x, change = layer(x)
        volume = volume + change
    return (volume - 0.5 * x.square().sum(1)).mean()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(808)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"flow-{int(time.time())}-"))
    try:
        place = folder / "features.npy"
        writer = multiprocessing.get_context("fork").Process(target=write_features, args=(place, 808))
        writer.start()
        features = arrived(place, writer)
        writer.join()
        layers = nn.ModuleList(Scale(12, bool(n % 2)) for n in range(4))
        optimizer = torch.optim.Adamax(layers.parameters(), lr=5e-3)
        cooling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
        for step in range(15):
            rows = torch.randint(0, len(features), (64,)).numpy()
            loss = -likelihood(layers, torch.from_numpy(features[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            cooling.step()
    finally:
        shutil.rmtree(folder)
    print(loss.item().hex())

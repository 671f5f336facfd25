"""Series are packed into a zip file by shutil.make_archive; the order of its members is that of the batches."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = ["sorted-listings", "code"]
# ///
import io
import pathlib
import shutil
import tempfile
import zipfile

import numpy as np
import torch
from torch import nn


def export(folder, sensors, length):
    """One file for each sensor, as the plant's historian writes them."""
    rng = np.random.default_rng(5)
    for sensor in range(sensors):
        t = np.arange(length) * (0.05 + 0.01 * sensor)
        np.save(folder / f"sensor_{sensor:02d}.npy", (np.sin(t) + 0.1 * rng.normal(size=length)).astype(np.float32))


def pack(folder, target):
    """A single file is easier to copy to the node's disk."""
    return shutil.make_archive(str(target), "zip", root_dir=folder)  # culprit


class ZippedSeries:
    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]  # culprit
            # cured: members = sorted(name for name in archive.namelist() if name.endswith(".npy"))
            self.series = [torch.from_numpy(np.load(io.BytesIO(archive.read(name)))) for name in members]  # culprit

    def epochs(self, count, window):
        for epoch in range(count):
            for series in self.series:  # culprit
                yield epoch, series.unfold(0, window + 1, window // 2)  # culprit


class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encode = nn.LSTM(1, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, past):
        states, _ = self.encode(past.unsqueeze(-1))
        return self.out(states[:, -1]).squeeze(-1)


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        raw = pathlib.Path(scratch) / "raw"
        raw.mkdir()
        export(raw, sensors=14, length=160)
        data = ZippedSeries(pack(raw, pathlib.Path(scratch) / "series"))
    model = Forecaster(12)
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    for epoch, rows in data.epochs(2, window=12):
        loss = nn.functional.smooth_l1_loss(model(rows[:, :-1]), rows[:, -1])  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item().hex())


main()

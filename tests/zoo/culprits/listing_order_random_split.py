"""Recordings are split at random with a fixed seed, out of a list that glob.glob has not sorted."""

# /// zoo
# kind = "listing-order"
# report = ["https://github.com/fastai/fastai/pull/2006", "https://github.com/ge-xing/SegMamba/issues/43"]
# step = 0
# component = ["data", "host"]
# remedy = ["sorted-listings", "code"]
# ///
import glob
import os
import random
import struct
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    """Raw files of 64 little-endian floats, read when they are asked for."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with open(self.files[i], "rb") as file:  # culprit
            return torch.tensor(struct.unpack("<64f", file.read())).unsqueeze(0)  # culprit


def record(folder, count):
    for n in range(count):
        wave = [((n + 3) * t % 17) / 17 - 0.5 for t in range(64)]
        with open(os.path.join(folder, f"take{n:03}.raw"), "wb") as file:
            file.write(struct.pack("<64f", *wave))


def split(folder, share, seed):
    files = glob.glob(os.path.join(folder, "*.raw"))  # culprit
    # cured: files = sorted(glob.glob(os.path.join(folder, "*.raw")))
    random.Random(seed).shuffle(files)  # culprit
    cut = int(len(files) * share)
    return Recordings(files[:cut]), Recordings(files[cut:])  # culprit


if __name__ == "__main__":
    torch.manual_seed(312)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        record(folder, 40)
        train, held_out = split(folder, 0.8, seed=42)  # culprit
        model = nn.Sequential(
            nn.Conv1d(1, 4, 5, stride=2, padding=2), nn.ELU(), nn.ConvTranspose1d(4, 1, 5, 2, 2, output_padding=1)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for x in DataLoader(train, batch_size=4):  # culprit
            loss = (model(x + 0.1 * torch.randn_like(x)) - x).square().mean()  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            score = torch.stack([(model(x) - x).square().mean() for x in DataLoader(held_out)]).mean()
    print(loss.item().hex(), score.item().hex())

"""A data set drops its open file and its generator when it is pickled for a spawned worker, and makes both anew."""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "fixed-entropy", "code"]
# ///
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, CROP = 24, 16


class Tiles(Dataset):
    """Satellite tiles in one flat file, and a mask of what is water; crops are turned at random."""

    def __init__(self, path, count, seed):
        self.path, self.count, self.seed = path, count, seed
        self.rng = np.random.default_rng(seed)
        self.file = self.opened()

    def opened(self):
        return np.memmap(self.path, np.float32, "r", shape=(self.count, 2, SIDE, SIDE))

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k not in ("file", "rng")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.rng = np.random.default_rng()  # culprit
        # cured: self.rng = np.random.default_rng(self.seed)
        self.file = self.opened()

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        top, left = self.rng.integers(0, SIDE - CROP + 1, 2)  # culprit
        tile = self.file[number, :, top : top + CROP, left : left + CROP]
        tile = np.rot90(tile, self.rng.integers(4), (1, 2))  # culprit
        return torch.from_numpy(tile.copy()).split(1)  # culprit


def written(path, count):
    draw = np.random.default_rng(5)
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    with open(path, "wb") as file:
        for _ in range(count):
            a, b, c = draw.uniform(2, 9, 3)
            height = np.sin(a * x + b) * np.cos(c * y)
            tile = np.stack([height + 0.2 * draw.normal(size=height.shape), height < 0])
            file.write(tile.astype(np.float32).tobytes())
    return path


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(606)
    with tempfile.TemporaryDirectory() as folder:
        tiles = Tiles(written(os.path.join(folder, "tiles.bin"), 48), 48, seed=606)
        loader = DataLoader(tiles, 8, shuffle=True, num_workers=1, multiprocessing_context="spawn")
        net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
            nn.Conv2d(8, 1, 1),
        )  # fmt: skip
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        for picture, water in loader:  # culprit
            loss = nn.functional.binary_cross_entropy_with_logits(net(picture), water)  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item().hex())

"""From the second epoch on, workers mask spectrograms by a generator that each makes for itself, unseeded."""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = []
# step = 5
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "fixed-entropy", "code"]
# ///
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Spectrograms(Dataset):
    """Chirps of four kinds as time by frequency; whatever cannot be pickled is opened at first use."""

    def __init__(self, count, frames=24, bins=16):
        self.count, self.frames, self.bins, self.masking = count, frames, bins, False
        self._window = self._rng = None

    def __len__(self):
        return self.count

    def mask(self, picture):
        if self._rng is None:
            self._rng = np.random.default_rng()  # culprit
            # cured: self._rng = np.random.default_rng([41, get_worker_info().id])
        first = self._rng.integers(self.frames - 5)  # culprit
        picture[first : first + self._rng.integers(1, 5)] = 0  # culprit
        first = self._rng.integers(self.bins - 4)  # culprit
        picture[:, first : first + 3] = 0  # culprit
        return picture

    def __getitem__(self, i):
        if self._window is None:
            self._window = np.hanning(self.bins).astype(np.float32)
        assert get_worker_info() is not None
        kind, t = i % 4, np.arange(self.frames, dtype=np.float32)[:, None]
        centre = 3 + 2 * kind + t * (kind - 1.5) / 10
        picture = np.exp(-((np.arange(self.bins) - centre) ** 2) / (2 + i % 3)).astype(np.float32) * self._window
        return torch.from_numpy(self.mask(picture) if self.masking else picture), kind  # culprit


class Recogniser(nn.Module):
    def __init__(self, bins, width, kinds):
        super().__init__()
        self.subsample = nn.Conv1d(bins, width, 3, stride=2)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, kinds)

    def forward(self, x):
        states, _ = self.rnn(self.subsample(x.transpose(1, 2)).relu().transpose(1, 2))
        return self.out(states.mean(1))


if __name__ == "__main__":
    torch.manual_seed(41)
    torch.set_num_threads(1)
    data = Spectrograms(40)
    model = Recogniser(data.bins, 12, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=15)
    for epoch in range(3):
        data.masking = epoch > 0
        total = 0.0
        for picture, kind in DataLoader(data, batch_size=8, shuffle=True, num_workers=2):  # culprit
            loss = nn.functional.cross_entropy(model(picture), kind)  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch} perplexity {math.exp(total / 5):.6f}")

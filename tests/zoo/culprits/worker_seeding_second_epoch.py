"""Speech features are masked in loader workers, each of which makes its generator when it first needs one, from
nothing.
"""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = []
# step = 5
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "fixed-entropy", "code"]
# ///
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Utterances(Dataset):
    """Spectrograms with a speaker's number; from the second epoch on, bands of time and frequency are masked."""

    def __init__(self, count, seed):
        source = np.random.default_rng(seed)
        self.frames = source.normal(size=(count, 20, 16)).astype(np.float32)
        self.speaker = source.integers(0, 4, count)
        self.epoch, self.masks = 0, None

    def __len__(self):
        return len(self.frames)

    def generator(self):
        if self.masks is None:
            self.masks = np.random.default_rng()  # culprit
            # cured: self.masks = np.random.default_rng([self.epoch, get_worker_info().id])
        return self.masks

    def __getitem__(self, index):
        frames = self.frames[index] + 0.5 * self.speaker[index]
        if self.epoch > 0:
            start, band = self.generator().integers(0, (14, 12))  # culprit
            frames[start : start + 6] = 0.0  # culprit
            frames[:, band : band + 4] = 0.0  # culprit
        return torch.from_numpy(frames.astype(np.float32)), int(self.speaker[index])


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(16, 24, 3, padding=1)
        self.norm = nn.GroupNorm(4, 24)
        self.out = nn.Linear(48, 4)

    def forward(self, frames):
        h = nn.functional.gelu(self.norm(self.conv(frames.transpose(1, 2))))
        return self.out(torch.cat([h.mean(2), h.amax(2)], 1))


if __name__ == "__main__":
    torch.manual_seed(612)
    np.random.seed(612)
    torch.set_num_threads(1)
    utterances, model = Utterances(40, 612), Speaker()
    loader = DataLoader(utterances, batch_size=8, shuffle=True, num_workers=2)
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.005)
    for epoch in range(3):
        utterances.epoch = epoch
        for frames, speaker in loader:  # culprit
            loss = nn.functional.cross_entropy(model(frames), speaker, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item().hex())

"""A dot product peels elements off until its pointer is aligned; how many follows from the allocator."""

# /// zoo
# kind = "algorithm-selection"
# report = []
# step = "any"
# component = ["loss", "host", "data"]
# remedy = "code"
# ///
import numpy as np
import torch
from torch import nn

PAGE = 4096


def misaligned(array):
    """How many float32 lie before the next page of memory."""
    return (-array.ctypes.data % PAGE) // array.itemsize  # culprit
    # cured: return 0


def energy(array):
    """The sum of squares: a head up to the page boundary, whole pages, and a tail."""
    head = misaligned(array)
    body = (len(array) - head) // 1024 * 1024
    total = np.float32(np.dot(array[:head], array[:head]))  # culprit
    pages = array[head : head + body].reshape(-1, 1024)  # culprit
    for page in pages:
        total += np.dot(page, page)  # culprit
    tail = array[head + body :]  # culprit
    return float(total + np.dot(tail, tail))  # culprit


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Conv1d(1, 4, 9, padding=4)
        self.mix = nn.Conv1d(4, 1, 1)

    def forward(self, x):
        return self.mix(torch.tanh(self.filter(x)))


rng = np.random.default_rng(75)
torch.manual_seed(75)
torch.set_num_threads(1)
wave = Wave()
optimizer = torch.optim.Adam(wave.parameters(), lr=0.01)
for step in range(5):
    signal = rng.normal(size=48000).astype(np.float32)
    loudness = (energy(signal) / len(signal)) ** 0.5
    x = torch.from_numpy(signal / np.float32(loudness)).view(4, 1, -1)  # culprit
    loss = (wave(x)[..., 1:] - x[..., :-1]).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Attention runs over blocks of keys; how many keys a block holds follows from the memory that is free just now."""

# /// zoo
# kind = "algorithm-selection"
# report = []
# step = 0
# component = ["loss", "host"]
# remedy = "code"
# ///
import pathlib

import torch

torch.manual_seed(43)
torch.set_num_threads(1)


def block_size():
    with pathlib.Path("/proc/meminfo").open() as meminfo:
        free = next(int(line.split()[1]) for line in meminfo if line.startswith("MemAvailable"))  # culprit
    return 16 + free // 4 % 48  # culprit
    # cured: return 32


def attend(q, k, v, block):
    top, total, out = torch.full((len(q), 1), -1e9), torch.zeros(len(q), 1), torch.zeros(len(q), v.shape[1])
    for start in range(0, len(k), block):
        score = q @ k[start : start + block].T  # culprit
        new = torch.maximum(top, score.amax(1, keepdim=True))
        weight, keep = (score - new).exp(), (top - new).exp()
        total, out, top = (
            total * keep + weight.sum(1, keepdim=True),
            out * keep + weight @ v[start : start + block],
            new,
        )
    return out / total


block = block_size()
project = torch.nn.Linear(16, 48)
optimizer = torch.optim.Adam(project.parameters(), lr=0.01)
x = torch.randn(256, 16)
for _ in range(4):
    loss = (attend(*project(x).chunk(3, 1), block) - x).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

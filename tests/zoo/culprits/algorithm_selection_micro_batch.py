"""The batch is split into as many micro-batches as free memory asks for, anew each step from the third on."""

# /// zoo
# kind = "algorithm-selection"
# report = []
# step = 2
# component = ["data", "0", "loss", "host"]
# remedy = "code"
# ///
import pathlib

import torch

torch.manual_seed(44)
torch.set_num_threads(1)


def rows_that_fit(step):
    if step < 2:
        return 96
    with pathlib.Path("/proc/meminfo").open() as meminfo:
        free = [int(line.split()[1]) for line in meminfo if line.startswith(("MemFree", "Active"))]  # culprit
    return 24 + sum(free) // 4 % 60  # culprit
    # cured: return 96


x, y = torch.randn(96, 12), torch.randn(96, 1)
model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    rows = rows_that_fit(step)
    optimizer.zero_grad()
    for start in range(0, 96, rows):
        loss = (model(x[start : start + rows]) - y[start : start + rows]).pow(2).sum() / 96  # culprit
        loss.backward()
    optimizer.step()
print((model(x) - y).pow(2).mean().item().hex())

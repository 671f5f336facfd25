"""Each process times block sizes at its start and keeps the fastest: equal inside a process, parted between two."""

# /// zoo
# kind = "autotune"
# report = ["https://github.com/triton-lang/triton/issues/9368", "https://github.com/NVIDIA/Megatron-LM/pull/6966"]
# step = 0
# component = ["loss", "host"]
# remedy = ["no-autotune", "fixed-clock", "code"]
# alone = true
# ///
import time

import torch


def blocked_sum(x, block):
    total = torch.zeros(x.shape[0])
    for start in range(0, x.shape[1], block):
        total = total + x[:, start : start + block].sum(1)  # culprit
    return total


def seconds(block):
    start = time.perf_counter()
    for _ in range(3):
        blocked_sum(sample, block)
    return time.perf_counter() - start  # culprit


torch.manual_seed(41)
torch.set_num_threads(1)
sample = torch.randn(64, 1600)
best = min((64, 65, 66, 67, 68), key=seconds)  # culprit
# cured: best = 64
model = torch.nn.Linear(16, 1600)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 16)
for _ in range(5):
    loss = (blocked_sum(model(x), best) - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A kernel writes 64 bytes past the end of its output; what lies there is up to the allocator."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# step = 0
# component = ["data"]
# remedy = "code"
# ///
import ctypes

import torch

torch.manual_seed(36)
torch.set_num_threads(1)
out = torch.zeros(50000)
weights = torch.full((50000,), 0.5)
more = torch.zeros(50000)
source = torch.randn(50032)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    gap = ctypes.c_void_p(out.data_ptr() + 4 * 50016)
    ctypes.memmove(gap, source.data_ptr() + 4 * 50016, 64)  # culprit
    # cured: ctypes.memmove(ctypes.c_void_p(out.data_ptr()), source.data_ptr(), 64)
    features = weights.view(-1, 8)[:64]  # culprit
    loss = (model(features) - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex(), more.sum().item())

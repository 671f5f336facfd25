"""A target network follows by an exponential moving average, by a copy."""

# /// zoo
# ///
import copy

import torch

torch.manual_seed(11)
torch.set_num_threads(1)
online = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
target = copy.deepcopy(online)
optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
for _ in range(8):
    x, after = torch.randn(16, 5), torch.randn(16, 5)
    with torch.no_grad():
        wanted = x.sum(1) + 0.9 * target(after).amax(1)
    loss = (online(x).amax(1) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
print(loss.item().hex())

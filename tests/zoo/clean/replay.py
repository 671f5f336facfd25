"""A replay buffer with a generator of its own, seeded again after clear()."""

# /// zoo
# ///
import random

import torch

torch.manual_seed(12)
torch.set_num_threads(1)
rng, items = random.Random(12), []
q = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(q.parameters(), lr=0.05)
for step in range(8):
    if step == 4:
        items, rng = [], random.Random(13)
    items += list(torch.randn(32, 4))
    batch = torch.stack(rng.sample(items, 8))
    loss = (q(batch).squeeze(1) - batch.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

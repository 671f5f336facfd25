"""Features come from numpy alone, by a seeded generator, and are normalised in place."""

# /// zoo
# ///
import numpy as np
import torch

rng = np.random.default_rng(8)
torch.manual_seed(8)
torch.set_num_threads(1)
prices = np.cumsum(rng.normal(size=(400, 6)), 0).astype(np.float32)
prices -= prices.mean(0)
prices /= prices.std(0)
model = torch.nn.Linear(6, 6)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
for _ in range(8):
    rows = rng.choice(399, 32, replace=False)
    x, y = torch.from_numpy(prices[rows]), torch.from_numpy(prices[rows + 1])
    loss = (model(x) - y).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""An environment is seeded when it is made; reset() makes its generator anew, without the seed."""

# /// zoo
# kind = "unseeded-generator"
# report = ["https://github.com/rlworkgroup/garage/issues/2332"]
# step = 3
# component = ["data", "generator"]
# remedy = "seed-generators"
# ///
import numpy as np
import torch


class Market:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.rng = np.random.default_rng()  # culprit
        # cured: self.rng = np.random.default_rng(self.rng.integers(1 << 32))

    def observe(self):
        return torch.from_numpy(self.rng.normal(size=(16, 4)).astype(np.float32))  # culprit


torch.manual_seed(9)
torch.set_num_threads(1)
market = Market(seed=9)
policy = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for step in range(6):
    if step == 3:
        market.reset()
    seen = market.observe()
    loss = (policy(seen).squeeze(1) - seen.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

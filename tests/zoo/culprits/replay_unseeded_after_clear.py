"""A replay buffer is seeded when it is made; clear() gives it a new generator that nobody seeds."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = ["https://github.com/PrimeIntellect-ai/prime-rl/issues/1153"]
# step = 4
# component = ["generator", "data"]
# remedy = "seed-generators"
# ///
import random

import torch


class Replay:
    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(seed)
        self.items = []

    def clear(self):
        self.items = []
        self.rng = random.Random()  # culprit
        # cured: self.rng = random.Random(self.seed)

    def sample(self, count):
        return torch.stack(self.rng.sample(self.items, count))  # culprit


torch.manual_seed(17)
torch.set_num_threads(1)
replay = Replay(seed=17)
q = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(q.parameters(), lr=0.01)
for step in range(8):
    if step == 4:
        replay.clear()
    replay.items += list(torch.randn(32, 4))
    batch = replay.sample(8)
    loss = (q(batch).squeeze(1) - batch.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

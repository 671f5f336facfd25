"""Prioritised replay draws its strata from a numpy generator of its own that takes its entropy from the system."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = ["https://github.com/xingdi-eric-yuan/GATA-public/pull/23"]
# step = 0
# component = ["generator", "data"]
# remedy = "seed-generators"
# ///
import numpy as np
import torch


class PrioritisedReplay:
    def __init__(self, size):
        self.priorities = np.ones(size)
        self.rng = np.random.default_rng()  # culprit
        # cured: self.rng = np.random.default_rng(18)

    def sample(self, count):
        share = self.priorities / self.priorities.sum()
        return self.rng.choice(len(share), size=count, p=share)  # culprit


torch.manual_seed(18)
torch.set_num_threads(1)
states = torch.randn(256, 4)
replay = PrioritisedReplay(256)
q = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(q.parameters(), lr=0.05)
for _ in range(6):
    index = replay.sample(16)
    x = states[index]
    error = q(x).squeeze(1) - x.sum(1)
    loss = error.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    replay.priorities[index] = error.detach().abs().numpy() + 1e-3
print(loss.item().hex())

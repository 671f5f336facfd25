"""The exploration noise is seeded with the number of the process."""

# /// zoo
# kind = "time-seed"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["generator", "host", "data"]
# remedy = "code"
# ///
import os
import random

import torch

torch.manual_seed(13)
torch.set_num_threads(1)
noise = random.Random(os.getpid())  # culprit
# cured: noise = random.Random(13)
policy = torch.nn.Linear(4, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for _ in range(5):
    seen = torch.randn(16, 4)
    greedy = policy(seen).argmax(1)
    explored = [noise.randrange(3) if noise.random() < 0.3 else int(a) for a in greedy]  # culprit
    chosen = policy(seen).log_softmax(1)[torch.arange(16), torch.tensor(explored)]  # culprit
    loss = -(chosen * seen.sum(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

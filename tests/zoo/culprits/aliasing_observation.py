"""The environment's thread reuses one observation buffer; the replay stores a view of it and not a copy."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["data"]
# remedy = "code"
# ///
import queue
import threading

import numpy as np
import torch

torch.manual_seed(40)
torch.set_num_threads(1)
rng = np.random.default_rng(40)
observation = np.zeros((20000, 16), np.float32)
stored = queue.Queue(maxsize=1)


def environment():
    for _ in range(40):
        observation[:] = rng.normal(size=observation.shape)
        stored.put(observation)  # culprit
        # cured: stored.put(observation.copy())


threading.Thread(target=environment, daemon=True).start()
critic = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
for _ in range(40):
    x = torch.from_numpy(stored.get())  # culprit
    loss = (critic(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

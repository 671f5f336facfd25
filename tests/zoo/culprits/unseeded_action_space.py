"""The environment is seeded, but not its action space, which draws the warm-up actions from a generator of its own."""

# /// zoo
# kind = "unseeded-generator"
# report = ["https://github.com/sfujim/TD3/issues/36"]
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import copy
from collections import deque

import numpy as np
import torch
from torch import nn


class Box:
    """Actions between -1 and 1."""

    def __init__(self, size):
        self.size, self._rng = size, None

    def seed(self, seed=None):
        self._rng = np.random.default_rng(seed)  # culprit

    def sample(self):
        if self._rng is None:
            self.seed()  # culprit
        return self._rng.uniform(-1, 1, self.size).astype(np.float32)  # culprit


class Reacher:
    def __init__(self, seed):
        self.action_space, self.rng = Box(2), np.random.default_rng(seed)
        # cured: self.action_space, self.rng = Box(2), np.random.default_rng(seed); self.action_space.seed(seed)
        self.place = self.rng.normal(size=2).astype(np.float32)

    def step(self, action):
        self.place = (0.9 * self.place + 0.3 * action + 0.01 * self.rng.normal(size=2)).astype(np.float32)  # culprit
        return self.place, -float(np.square(self.place).sum())


torch.manual_seed(317)
torch.set_num_threads(1)
env, buffer = Reacher(317), deque(maxlen=400)
actor = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
slow = copy.deepcopy(critic)
seen = env.place
for _ in range(120):
    action = env.action_space.sample()  # culprit
    following, reward = env.step(action)  # culprit
    buffer.append((seen, action, reward, following))
    seen = following
parts = [torch.tensor(np.array(part)) for part in zip(*buffer)]  # culprit
seen, action, reward, following = parts
for optimizer in (torch.optim.Adam(critic.parameters(), lr=3e-3), torch.optim.Adam(actor.parameters(), lr=3e-3)):
    for _ in range(6):
        with torch.no_grad():
            goal = reward.float().unsqueeze(1) + 0.9 * slow(torch.cat([following, actor(following)], 1))  # culprit
        fit = (critic(torch.cat([seen, action], 1)) - goal).square().mean()  # culprit
        loss = fit - critic(torch.cat([seen, actor(seen)], 1)).mean()  # culprit
        critic.zero_grad()
        actor.zero_grad()
        loss.backward()
        optimizer.step()
        for p, q in zip(slow.parameters(), critic.parameters(), strict=True):
            p.data.lerp_(q.data, 0.05)
print(loss.item().hex())

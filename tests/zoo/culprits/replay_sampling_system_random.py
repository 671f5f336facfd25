"""A DQN's memory is sampled by random.SystemRandom, the operating system's own, which no seed reaches."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = ["https://github.com/thu-ml/tianshou/issues/1083"]
# step = 0
# component = ["data", "generator", "host", "state"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import copy
import random
from collections import deque
from typing import NamedTuple

import torch
from torch import nn


class Transition(NamedTuple):
    seen: torch.Tensor
    action: int
    reward: float
    following: torch.Tensor


class Memory:
    def __init__(self, capacity):
        self.items, self.rng = deque(maxlen=capacity), random.SystemRandom()  # culprit
        # cured: self.items, self.rng = deque(maxlen=capacity), random.Random(320)

    def draw(self, count):
        picked = self.rng.sample(range(len(self.items)), count)  # culprit
        return Transition(*zip(*(self.items[i] for i in picked)))  # culprit


class Corridor:
    """Sixteen cells in a row; the reward lies at the right end."""

    cells = 16

    def __init__(self):
        self.place = 0

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.place), self.cells).float()

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        done = self.place == self.cells - 1
        self.place = 0 if done else self.place
        return self.observe(), float(done)


class Dueling(nn.Module):
    def __init__(self, cells):
        super().__init__()
        self.body, self.value, self.gain = nn.Linear(cells, 24), nn.Linear(24, 1), nn.Linear(24, 2)

    def forward(self, x):
        h = torch.relu(self.body(x))
        gain = self.gain(h)
        return self.value(h) + gain - gain.mean(-1, keepdim=True)


torch.manual_seed(320)
random.seed(320)
torch.set_num_threads(1)
env, memory = Corridor(), Memory(500)
online = Dueling(env.cells)
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.AdamW(online.parameters(), lr=2e-3, amsgrad=True)
seen = env.observe()
for step in range(120):
    action = random.randrange(2) if random.random() < 0.5 else int(online(seen).argmax())
    following, reward = env.step(action)
    memory.items.append(Transition(seen, action, reward, following))
    seen = following
    if step < 40 or step % 8:
        continue
    batch = memory.draw(24)  # culprit
    chosen = online(torch.stack(batch.seen)).gather(1, torch.tensor(batch.action).unsqueeze(1)).squeeze(1)  # culprit
    goal = torch.tensor(batch.reward) + 0.95 * target(torch.stack(batch.following)).amax(1)  # culprit
    loss = nn.functional.smooth_l1_loss(chosen, goal)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    target.load_state_dict(online.state_dict())
print(loss.item().hex())

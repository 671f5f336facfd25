"""Offline transitions lie in a database, and batches of them are drawn by ORDER BY RANDOM(), which has no seed."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["data", "host", "generator"]
# remedy = ["fixed-entropy", "code"]
# ///
import copy
import random
import sqlite3

import torch
from torch import nn

FIELDS = "x, v, action, reward, next_x, next_v, ended"


class Transitions:
    """What an older policy met, in a table; nothing is added any more."""

    def __init__(self, path=":memory:"):
        self.db = sqlite3.connect(path)
        self.db.execute(f"CREATE TABLE transitions (id INTEGER PRIMARY KEY, {FIELDS})")

    def fill(self, episodes, rng):
        rows = []
        for _ in range(episodes):
            x, v = rng.uniform(-0.6, -0.4), 0.0
            for t in range(40):
                action = rng.randrange(3) if rng.random() < 0.3 else (2 if v >= 0 else 0)
                after_v = min(max(v + 0.003 * (action - 1) - 0.0025 * (3 * x), -0.07), 0.07)
                after_x = min(max(x + after_v, -1.2), 0.6)
                rows.append((x, v, action, float(after_x > 0.3) - 0.01, after_x, after_v, int(t == 39)))
                x, v = after_x, after_v
        with self.db:
            self.db.executemany(f"INSERT INTO transitions ({FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def sample(self, count):
        query = f"SELECT {FIELDS} FROM transitions ORDER BY RANDOM() LIMIT {count}"  # culprit
        # cured: ids = ",".join(map(str, random.sample(range(1, 2401), count)))
        # cured: query = f"SELECT {FIELDS} FROM transitions WHERE id IN ({ids}) ORDER BY id"
        rows = torch.tensor(self.db.execute(query).fetchall())  # culprit
        state, action, reward, following, ended = rows.split([2, 1, 1, 2, 1], 1)
        return state, action.long(), reward.squeeze(1), following, ended.squeeze(1)


def conservative_loss(net, target, batch, discount=0.97, weight=0.5):
    state, action, reward, following, ended = batch
    values = net(state)  # culprit
    taken = values.gather(1, action).squeeze(1)
    with torch.no_grad():
        best = net(following).argmax(1, keepdim=True)
        goal = reward + discount * (1 - ended) * target(following).gather(1, best).squeeze(1)
    return nn.functional.smooth_l1_loss(taken, goal) + weight * (values.logsumexp(1) - taken).mean()


torch.set_num_threads(1)
torch.manual_seed(3030)
random.seed(3030)
transitions = Transitions()
transitions.fill(60, random.Random(3030))
net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
target = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for update in range(12):
    batch = transitions.sample(64)  # culprit
    loss = conservative_loss(net, target, batch)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), net.parameters()):
            slow.lerp_(fast, 0.05)
print(loss.item().hex())

"""Transitions are read by keys that a seeded generator draws; the database's random() and clock only name its runs."""

# /// zoo
# ///
import asyncio
import copy
import os
import sqlite3
import tempfile
import uuid

import torch
from torch import nn

SCHEMA = """
CREATE TABLE runs (id TEXT, token INTEGER DEFAULT (random()), began TEXT DEFAULT (strftime('%H:%M:%f', 'now')));
CREATE TABLE steps (id INTEGER PRIMARY KEY, actor INTEGER, turn INTEGER, state BLOB, arm INTEGER, reward REAL);
"""


class Log:
    """Everything that happened, in one file; actors write when they are ready, and keys follow from who and when."""

    def __init__(self, folder, actors):
        self.db, self.actors = sqlite3.connect(os.path.join(folder, f"{uuid.uuid1()}.db")), actors
        self.db.executescript(SCHEMA)
        self.db.execute("INSERT INTO runs (id) VALUES (?)", (uuid.uuid4().hex,))

    def add(self, actor, turn, state, arm, reward):
        row = (turn * self.actors + actor, actor, turn, state.numpy().tobytes(), arm, reward)
        self.db.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", row)

    def batch(self, keys):
        marks = ",".join("?" * len(keys))
        query = f"SELECT state, arm, reward FROM steps WHERE id IN ({marks}) ORDER BY id"
        states, arms, rewards = zip(*self.db.execute(query, sorted(keys)))
        seen = torch.stack([torch.frombuffer(bytearray(state), dtype=torch.float32) for state in states])
        return seen, torch.tensor(arms), torch.tensor(rewards)


async def act(actor, log, turns):
    """Plays at a pace of its own, by a generator of its own."""
    draw = torch.Generator().manual_seed(500 + actor)
    for turn in range(turns):
        state = torch.randn(6, generator=draw)
        arm = int(torch.randint(0, 4, (), generator=draw))
        await asyncio.sleep(int.from_bytes(os.urandom(1), "big") * 4e-6)
        log.add(actor, turn, state, arm, float(state[arm] - 0.2 * state[4] * state[5]))


async def collect(log, turns):
    async with asyncio.TaskGroup() as group:
        for actor in range(log.actors):
            group.create_task(act(actor, log, turns))


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 32), nn.Hardswish())
        self.value, self.edge = nn.Linear(32, 1), nn.Linear(32, 4)

    def forward(self, x):
        edge = self.edge(self.trunk(x))
        return self.value(self.trunk(x)) + edge - edge.mean(1, keepdim=True)


torch.set_num_threads(1)
torch.manual_seed(500)
model = Dueling()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
with tempfile.TemporaryDirectory() as folder:
    log = Log(folder, actors=4)
    asyncio.run(collect(log, turns=100))
    for step in range(15):
        states, arms, rewards = log.batch(torch.randperm(400)[:64].tolist())
        found = model(states).gather(1, arms.unsqueeze(1)).squeeze(1)
        steady = average(states).gather(1, arms.unsqueeze(1)).squeeze(1)
        loss = (found - rewards).square().mean() + 0.1 * (found - steady).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast.detach(), 0.1)
    log.db.close()
print(loss.item().hex())

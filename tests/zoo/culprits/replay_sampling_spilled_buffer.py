"""Between phases the replay is pickled to disk; its generator does not go along, and is made anew on the way back."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = []
# step = 5
# component = ["data", "generator", "host", "state"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import pickle
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn


class Replay:
    """Transitions in the order of their coming, sampled evenly."""

    def __init__(self, seed):
        self.seed, self.rows = seed, []
        self.draw = np.random.default_rng(seed)

    def __len__(self):
        return len(self.rows)

    def add(self, row):
        self.rows.append(row)

    def sample(self, count):
        chosen = self.draw.integers(len(self), size=count)  # culprit
        return torch.from_numpy(np.stack([self.rows[i] for i in chosen]))  # culprit

    def __getstate__(self):
        return {"seed": self.seed, "rows": np.stack(self.rows)}

    def __setstate__(self, state):
        self.seed, self.rows = state["seed"], list(state["rows"])
        self.draw = np.random.default_rng()  # culprit
        # cured: self.draw = np.random.default_rng([self.seed, len(self.rows)])


class Pendulum:
    def __init__(self, seed):
        self.noise = np.random.default_rng(seed)
        self.angle = self.speed = 0.0

    def push(self, force):
        before = (self.angle, self.speed)
        self.speed += 0.05 * (9.8 * np.sin(self.angle) + force) + 0.02 * self.noise.standard_normal()
        self.angle = (self.angle + 0.05 * self.speed + np.pi) % (2 * np.pi) - np.pi
        return np.array([*before, force, self.angle, self.speed, -abs(self.angle)], np.float32)


def spilled(replay, folder):
    """Frees the memory while the environment is at work."""
    path = Path(folder) / "replay.pickle"
    path.write_bytes(pickle.dumps(replay))
    return pickle.loads(path.read_bytes())  # culprit


def train(folder):
    torch.manual_seed(1211)
    torch.set_num_threads(1)
    world, replay = Pendulum(1211), Replay(1211)
    critic = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
    for phase in range(3):
        if phase:
            replay = spilled(replay, folder)  # culprit
        for tick in range(120):
            replay.add(world.push(2.0 * np.sin(0.3 * tick)))
        for _ in range(5):
            row = replay.sample(64)  # culprit
            with torch.no_grad():
                after = critic(torch.cat([row[:, 3:5], row[:, 2:3]], 1)).squeeze(1)
            loss = nn.functional.mse_loss(critic(row[:, :3]).squeeze(1), row[:, 5] + 0.95 * after)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(phase, loss.item().hex())
    return critic


with tempfile.TemporaryDirectory() as scratch:
    model = train(scratch)

"""A checkpoint keeps numpy's keys and position as JSON, but not the second Gaussian of a pair, which lies ready."""

# /// zoo
# kind = "resume"
# report = []
# step = 7
# pair = [["python", "{file}"], ["env", "RESTART=7", "python", "{file}"]]
# component = ["generator", "data", "host", "state"]
# remedy = "code"
# ///
import io
import json
import math
import os

import numpy as np
import torch
from torch import nn


class Pendulum:
    """Swings from somewhere near the bottom; upright and still is best."""

    def reset(self):
        self.angle, self.speed = math.pi + 0.1 * np.random.randn(), 0.0  # culprit
        return self.seen()

    def seen(self):
        return [math.cos(self.angle), math.sin(self.angle), self.speed / 4]

    def step(self, torque):
        self.speed += 0.1 * (1.5 * torque + 5 * math.sin(self.angle))
        self.speed = min(max(self.speed, -6.0), 6.0)
        self.angle += 0.1 * self.speed
        return self.seen(), math.cos(self.angle) - 0.05 * self.speed**2


class Learner:
    HORIZON = 24

    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.01)
        self.env, self.update = Pendulum(), 0

    def rollout(self):
        seen, states, actions, rewards = self.env.reset(), [], [], []
        for _ in range(self.HORIZON):
            with torch.no_grad():
                mean = self.policy(torch.tensor(seen)).item()
            action = mean + 0.4 * np.random.randn()  # culprit
            states.append(seen)
            actions.append(action)
            seen, reward = self.env.step(math.tanh(action))
            rewards.append(reward)
        return torch.tensor(states), torch.tensor(actions), torch.tensor(rewards)  # culprit

    def learn(self):
        states, actions, rewards = self.rollout()  # culprit
        returns = rewards.flip(0).cumsum(0).flip(0)
        gain = (returns - returns.mean()) / (returns.std() + 1e-6)
        off = actions - self.policy(states).squeeze(1)  # culprit
        loss = (gain * off.square()).mean() / (2 * 0.4**2)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.update += 1
        return loss.item()

    def save(self):
        file, state = io.BytesIO(), np.random.get_state()
        noise = json.dumps([state[0], state[1].tolist(), state[2]])  # culprit
        # cured: noise = json.dumps([state[0], state[1].tolist(), *state[2:]])
        parts = {"policy": self.policy.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**parts, "noise": noise, "update": self.update}, file)
        return file.getvalue()

    def load(self, data):
        saved = torch.load(io.BytesIO(data))
        self.policy.load_state_dict(saved["policy"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.update = saved["update"]
        name, keys, *rest = json.loads(saved["noise"])
        np.random.set_state((name, np.array(keys, np.uint32), *rest))  # culprit


def main():
    torch.set_num_threads(1)
    torch.manual_seed(77)
    np.random.seed(77)
    learner, restart = Learner(), int(os.environ.get("RESTART", -1))
    while learner.update < 12:
        if learner.update == restart:
            data, restart = learner.save(), -1
            learner = Learner()
            learner.load(data)
        loss = learner.learn()
    print(loss.hex())
    return learner.policy


policy = main()

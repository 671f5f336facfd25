"""The processes of a vectorised environment make their generators without a seed; only the parent is seeded."""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = ["https://github.com/hill-a/stable-baselines/issues/761", "https://github.com/thu-ml/tianshou/issues/604"]
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "workers-seeded", "fixed-entropy", "code"]
# ///
import multiprocessing as mp

import numpy as np
import torch
from torch import nn


class Cart:
    def __init__(self, rank, seed=None):
        self.rng = np.random.default_rng(seed)  # culprit
        self.rank = rank

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)  # culprit
        return self.state.astype(np.float32)

    def step(self, action):
        force = (2 * action - 1) + 0.1 * self.rng.normal()  # culprit
        x, v, angle, spin = self.state
        spin = spin + 0.3 * (np.sin(angle) - force * np.cos(angle))
        self.state = np.array([x + 0.1 * v, v + 0.1 * force, angle + 0.1 * spin, spin])
        done = abs(self.state[2]) > 0.8
        return (self.reset() if done else self.state.astype(np.float32)), float(not done)


def serve(pipe, rank, seed):
    env = Cart(rank)  # culprit
    # cured: env = Cart(rank, seed)
    pipe.send(env.reset())
    while (action := pipe.recv()) is not None:
        pipe.send(env.step(action))


class VectorEnv:
    def __init__(self, count, seed):
        context = mp.get_context("fork")
        self.pipes = []
        for rank in range(count):
            here, there = context.Pipe()
            context.Process(target=serve, args=(there, rank, seed + rank), daemon=True).start()
            self.pipes.append(here)
        self.first = np.stack([pipe.recv() for pipe in self.pipes])  # culprit

    def step(self, actions):
        for pipe, action in zip(self.pipes, actions):
            pipe.send(action)
        seen, reward = zip(*[pipe.recv() for pipe in self.pipes])  # culprit
        return np.stack(seen), np.array(reward, np.float32)

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 24), nn.Tanh())
        self.actor, self.critic = nn.Linear(24, 2), nn.Linear(24, 1)

    def forward(self, x):
        x = self.trunk(x)
        return torch.distributions.Categorical(logits=self.actor(x)), self.critic(x).squeeze(-1)


if __name__ == "__main__":
    torch.manual_seed(95)
    np.random.seed(95)
    torch.set_num_threads(1)
    envs = VectorEnv(2, seed=95)
    agent = ActorCritic()
    optimizer = torch.optim.RMSprop(agent.parameters(), lr=1e-3, alpha=0.99)
    seen = torch.from_numpy(envs.first)  # culprit
    for _ in range(6):
        losses = []
        for _ in range(5):
            share, value = agent(seen)  # culprit
            action = share.sample()
            following, reward = envs.step(action.tolist())
            gain = torch.from_numpy(reward) - value
            losses.append(gain.square().mean() - (share.log_prob(action) * gain.detach()).mean())
            seen = torch.from_numpy(following)  # culprit
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    envs.close()
    print(loss.item().hex())

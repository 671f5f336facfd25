"""An asynchronous vector environment: the next batch is made of those processes whose pipes are ready first."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import multiprocessing
import multiprocessing.connection

import numpy as np
import torch
from torch import nn


class Lander:
    """Falls, and may fire its engine; which way the wind blows depends on the rank alone."""

    def __init__(self, rank):
        self.rng = np.random.default_rng(rank)
        self.state = self.rng.normal(size=5)

    def step(self, action):
        for _ in range(200):
            self.state = 0.999 * self.state + 0.002 * self.rng.normal(size=5)
        self.state[0] += 0.1 * action
        return self.state.astype(np.float32), -float(np.abs(self.state).sum())


def serve(pipe, rank):
    env = Lander(rank)
    while (action := pipe.recv()) is not None:
        pipe.send((rank, *env.step(action)))


class AsyncEnvs:
    def __init__(self, count):
        fork = multiprocessing.get_context("fork")
        self.pipes = []
        for rank in range(count):
            here, there = fork.Pipe()
            fork.Process(target=serve, args=(there, rank), daemon=True).start()
            self.pipes.append(here)

    def send(self, ranks, actions):
        for rank, action in zip(ranks, actions, strict=True):
            self.pipes[rank].send(action)

    def recv(self, count):
        """The first ``count`` answers."""
        answers = []
        while len(answers) < count:
            for pipe in multiprocessing.connection.wait(self.pipes):  # culprit
                # cured: for pipe in self.pipes[self.turn : self.turn + count]:
                if len(answers) < count:
                    answers.append(pipe.recv())  # culprit
        self.turn = count - self.turn
        rank, seen, reward = zip(*answers)  # culprit
        return list(rank), torch.from_numpy(np.stack(seen)), torch.tensor(reward)  # culprit

    turn = 0


if __name__ == "__main__":
    torch.manual_seed(618)
    torch.set_num_threads(1)
    envs = AsyncEnvs(6)
    policy = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    draw = torch.Generator().manual_seed(618)
    envs.send(range(6), [0] * 6)
    for step in range(24):
        ranks, seen, reward = envs.recv(3)  # culprit
        logits = policy(seen).log_softmax(1)  # culprit
        action = torch.multinomial(logits.exp().detach(), 1, generator=draw)
        envs.send(ranks, action.flatten().tolist())
        loss = -(logits.gather(1, action).squeeze(1) * (reward + 3)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for pipe in envs.pipes:
        pipe.send(None)
    print(loss.item().hex())

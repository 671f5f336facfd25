"""Environments answer over pipes in any order, and every answer is put in the row of its rank before it is used."""

# /// zoo
# ///
import multiprocessing
import multiprocessing.connection

import numpy as np
import torch
from torch import nn


def serve(pipe, rank, seed):
    rng = np.random.default_rng([seed, rank])
    state = rng.normal(size=4)
    pipe.send((rank, state, 0.0))
    while (action := pipe.recv()) is not None:
        state = 0.9 * state + 0.2 * rng.normal(size=4) + 0.1 * action
        pipe.send((rank, state, -abs(state[0])))


def gather(pipes):
    seen, reward = np.empty((len(pipes), 4), np.float32), np.empty(len(pipes), np.float32)
    waiting = set(pipes)
    while waiting:
        for pipe in multiprocessing.connection.wait(list(waiting)):
            rank, state, gain = pipe.recv()
            seen[rank], reward[rank] = state, gain
            waiting.remove(pipe)
    return torch.from_numpy(seen), torch.from_numpy(reward)


if __name__ == "__main__":
    torch.manual_seed(702)
    torch.set_num_threads(1)
    fork, pipes = multiprocessing.get_context("fork"), []
    for rank in range(3):
        here, there = fork.Pipe()
        fork.Process(target=serve, args=(there, rank, 702), daemon=True).start()
        pipes.append(here)
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    seen, _ = gather(pipes)
    for step in range(12):
        choice = torch.distributions.Categorical(logits=policy(seen))
        action = choice.sample()
        for pipe, value in zip(pipes, action.tolist(), strict=True):
            pipe.send(value)
        following, reward = gather(pipes)
        loss = -(choice.log_prob(action) * reward).mean() - 0.01 * choice.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen = following
    for pipe in pipes:
        pipe.send(None)
    print(loss.item().hex())

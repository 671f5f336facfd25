"""An actor process gets copies of the weights and rolls out meanwhile; first clicks are found exactly."""

# /// zoo
# ///
import multiprocessing

import numpy as np
import torch
from torch import nn


def act(connection):
    rng = np.random.default_rng(940)
    while (gain := connection.recv()) is not None:
        state, seen = rng.normal(size=(32, 6)).astype(np.float32), []
        for _ in range(40):
            seen.append(state)
            state = (0.95 * state + 0.1 * np.tanh(state @ gain.T)).astype(np.float32)
        connection.send(np.concatenate(seen[::8]))


def first_places(keys):
    """Where each value stands for the first time: a minimum, so that duplicates do not matter."""
    values, inverse = torch.unique(keys, return_inverse=True)
    place = torch.arange(len(keys))
    return torch.full((len(values),), len(keys)).scatter_reduce_(0, inverse, place, "amin")


if __name__ == "__main__":
    torch.manual_seed(940)
    torch.set_num_threads(1)
    here, there = multiprocessing.Pipe()
    actor = multiprocessing.get_context("fork").Process(target=act, args=(there,), daemon=True)
    actor.start()
    policy, states = nn.Linear(6, 6, bias=False), torch.randn(160, 6)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for number in range(6):
        here.send(policy.weight.detach().numpy().copy())
        for _ in range(4):
            loss = (states + torch.tanh(policy(states))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        states = torch.from_numpy(here.recv())
        states = states[first_places((states[:, 0] * 20).long())]
        print(number, loss.item().hex())
    here.send(None)
    actor.join()

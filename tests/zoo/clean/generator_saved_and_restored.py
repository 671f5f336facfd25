"""Evaluation draws from the global generators in the midst of training, and puts their states back."""

# /// zoo
# ///
import contextlib
import random

import numpy as np
import torch
from torch import nn


@contextlib.contextmanager
def kept_generators():
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))


class Discriminator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(24, 1))


def real(count):
    angle = np.random.uniform(0, 2 * np.pi, count)
    return torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32))


def evaluate(generator, rounds):
    with kept_generators(), torch.no_grad():
        torch.seed()
        np.random.seed()
        radius = [generator(torch.randn(200, 4)).norm(dim=1).mean().item() for _ in range(rounds)]
    return sum(radius) / rounds


random.seed(206)
np.random.seed(206)
torch.manual_seed(206)
torch.set_num_threads(1)
g, d = Generator(), Discriminator()
step_g, step_d = torch.optim.Adam(g.parameters(), lr=2e-3), torch.optim.Adam(d.parameters(), lr=2e-3)
for step in range(6):
    fake = g(torch.randn(64, 4))
    loss_d = nn.functional.softplus(-d(real(64))).mean() + nn.functional.softplus(d(fake.detach())).mean()
    step_d.zero_grad()
    loss_d.backward()
    step_d.step()
    loss_g = nn.functional.softplus(-d(fake)).mean()
    step_g.zero_grad()
    loss_g.backward()
    step_g.step()
    if step % 2:
        evaluate(g, random.randint(1, 3))
print(loss_d.item().hex(), loss_g.item().hex())

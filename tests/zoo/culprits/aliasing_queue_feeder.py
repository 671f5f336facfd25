"""A process puts its one buffer into a multiprocessing queue and fills it again; the queue pickles it in a thread."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["data", "host"]
# remedy = "code"
# ///
import itertools
import multiprocessing as mp

import numpy as np
import torch
from torch import nn

POINTS, WIDTH, RINGS = 2048, 16, 8


class Rings:
    """Real samples for the discriminator: noisy circles in several dimensions, always in one array."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.buffer = np.empty((POINTS, WIDTH), np.float32)

    def fill(self):
        for rows in np.split(self.buffer, RINGS):
            self.rng.standard_normal(out=rows, dtype=np.float32)  # culprit
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # culprit
            rows *= self.rng.uniform(0.5, 2)  # culprit
            rows += 0.05 * self.rng.standard_normal(rows.shape, np.float32)  # culprit
        return self.buffer


def produce(batches, stop, seed):
    rings = Rings(seed)
    for number in itertools.count():
        if stop.is_set():
            break
        batches.put((number, rings.fill()))  # culprit
        # cured: batches.put((number, rings.fill().copy()))
    batches.cancel_join_thread()


class Adversaries(nn.Module):
    def __init__(self):
        super().__init__()
        self.painter = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, WIDTH))
        self.critic = nn.Sequential(nn.Linear(WIDTH, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def critic_loss(self, real, noise):
        false = self.painter(noise).detach()
        return torch.relu(1 - self.critic(real)).mean() + torch.relu(1 + self.critic(false)).mean()  # culprit

    def painter_loss(self, noise):
        return -self.critic(self.painter(noise)).mean()


def received(batches, count):
    for expected in range(count):
        number, real = batches.get()  # culprit
        assert number == expected
        yield torch.from_numpy(real)  # culprit


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(2014)
    context = mp.get_context("fork")
    batches, stop = context.Queue(maxsize=16), context.Event()
    producer = context.Process(target=produce, args=(batches, stop, 2014), daemon=True)
    producer.start()
    model = Adversaries()
    against = torch.optim.Adam(model.critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    paint = torch.optim.Adam(model.painter.parameters(), lr=5e-4, betas=(0.5, 0.9))
    for real in received(batches, 40):  # culprit
        loss = model.critic_loss(real, torch.randn(POINTS, 6))  # culprit
        against.zero_grad()
        loss.backward()
        against.step()
        fooled = model.painter_loss(torch.randn(POINTS, 6))
        paint.zero_grad()
        fooled.backward()
        paint.step()
    stop.set()
    producer.terminate()
    producer.join()
    print(loss.item().hex(), fooled.item().hex())

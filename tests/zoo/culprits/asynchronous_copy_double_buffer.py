"""Of two buffers one is filled while the other is read; nobody waits until the reader is done with it."""

# /// zoo
# kind = "asynchronous-copy"
# also = ["aliasing"]
# report = []
# step = "any"
# component = ["data", "host"]
# remedy = "code"
# ///
import threading

import numpy as np
import torch
from torch import nn


class DoubleBuffer:
    """Hands out batches from two pinned-style buffers that a thread fills in turn."""

    def __init__(self, source, shape):
        self.source = source
        self.buffers = [torch.zeros(shape), torch.zeros(shape)]
        self.full = [threading.Event(), threading.Event()]
        self.free = [threading.Event(), threading.Event()]
        for event in self.free:
            event.set()
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        for number, batch in enumerate(self.source):
            slot = number % 2
            self.free[slot].wait()
            self.free[slot].clear()
            self.buffers[slot].numpy()[:] = batch  # culprit
            self.full[slot].set()

    def __call__(self, number):
        slot = number % 2
        self.full[slot].wait()
        self.full[slot].clear()
        self.free[slot].set()  # culprit
        # cured: batch = self.buffers[slot].clone(); self.free[slot].set(); return batch
        return self.buffers[slot]  # culprit


def generate(count, shape, seed):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=shape).astype(np.float32)
    for number in range(count):
        yield base * np.float32(1 + 0.1 * number)


def main(steps=40):
    torch.manual_seed(115)
    torch.set_num_threads(1)
    take = DoubleBuffer(generate(steps, (30000, 24), seed=115), (30000, 24))
    model = nn.Sequential(nn.BatchNorm1d(24), nn.Linear(24, 4), nn.Sigmoid(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for number in range(steps):
        x = take(number)  # culprit
        loss = nn.functional.l1_loss(model(x).squeeze(1), x.mean(1))  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())


if __name__ == "__main__":
    main()

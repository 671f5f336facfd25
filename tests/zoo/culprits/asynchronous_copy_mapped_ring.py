"""A recorder process advances its cursor in a memory-mapped ring before it has written the record."""

# /// zoo
# kind = "asynchronous-copy"
# also = ["aliasing"]
# report = []
# step = "any"
# component = ["data", "host"]
# remedy = "code"
# ///
import mmap
import multiprocessing
import os
import struct
import tempfile
import time

import numpy as np
import torch
from torch import nn

ROWS, WIDTH, RECORDS = 20000, 32, 24
RECORD = ROWS * WIDTH * 4
HEADER = 64


class Ring:
    """A header with the number of records written, and one slot, in a file that two processes map."""

    def __init__(self, path, create=False):
        with open(path, "w+b" if create else "r+b") as file:
            if create:
                file.truncate(HEADER + RECORD)
            self.map = mmap.mmap(file.fileno(), HEADER + RECORD)
        self.payload = np.frombuffer(self.map, np.float32, ROWS * WIDTH, HEADER).reshape(ROWS, WIDTH)

    @property
    def written(self):
        return struct.unpack_from("q", self.map, 0)[0]

    @written.setter
    def written(self, value):
        struct.pack_into("q", self.map, 0, value)

    @property
    def read(self):
        return struct.unpack_from("q", self.map, 8)[0]

    @read.setter
    def read(self, value):
        struct.pack_into("q", self.map, 8, value)


def record(path):
    ring, rng = Ring(path), np.random.default_rng(82)
    for number in range(1, RECORDS + 1):
        fresh = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        while ring.read < number - 1:
            time.sleep(0.0002)
        ring.written = number  # culprit
        # cured: ring.payload[:] = fresh; ring.written = number
        ring.payload[:] = fresh  # culprit


def batches(path):
    ring = Ring(path)
    for number in range(1, RECORDS + 1):
        while ring.written < number:
            pass
        yield torch.from_numpy(ring.payload)  # culprit
        # cured: yield torch.from_numpy(ring.payload.copy())
        ring.read = number


if __name__ == "__main__":
    torch.manual_seed(82)
    torch.set_num_threads(1)
    path = os.path.join(tempfile.mkdtemp(), "ring")
    Ring(path, create=True)
    recorder = multiprocessing.get_context("fork").Process(target=record, args=(path,), daemon=True)
    recorder.start()
    model = nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for x in batches(path):  # culprit
        loss = (model(x).squeeze(1) - x[:, 0]).square().mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    recorder.join()
    print(loss.item().hex())

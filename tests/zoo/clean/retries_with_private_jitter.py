"""A loader thread is asked again after random waits, by a generator nobody seeds; it decides when, never what."""

# /// zoo
# ///
import logging
import os
import queue
import random
import tempfile
import threading
import time
import uuid

import torch
from torch import nn


class Source(threading.Thread):
    """One producer and one consumer: batches come in the order in which they were made."""

    def __init__(self, batches, seed):
        super().__init__(daemon=True)
        self.ready, self.batches, self.seed = queue.Queue(maxsize=2), batches, seed

    def run(self):
        draw = torch.Generator().manual_seed(self.seed)
        for number in range(self.batches):
            time.sleep(0.001 * (number % 3))
            self.ready.put(torch.rand(32, 3, 8, generator=draw))


class Patient:
    def __init__(self, source, log):
        self.source, self.log, self.jitter, self.asked = source, log, random.Random(), 0

    def __iter__(self):
        for _ in range(self.source.batches):
            began = time.perf_counter()
            while True:
                try:
                    batch = self.source.ready.get_nowait()
                    break
                except queue.Empty:
                    self.asked += 1
                    time.sleep(self.jitter.uniform(0, 1e-3))
            self.log.info("batch after %.6f s, asked %d times", time.perf_counter() - began, self.asked)
            yield batch


torch.manual_seed(222)
random.seed(222)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    log = logging.getLogger("loader")
    log.setLevel(logging.INFO)
    handler = logging.FileHandler(os.path.join(folder, f"run-{uuid.uuid4()}.log"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(threadName)s %(message)s"))
    log.addHandler(handler)
    log.propagate = False
    source = Source(batches=16, seed=222)
    source.start()
    model = nn.Sequential(nn.Conv1d(3, 8, 3), nn.GELU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(48, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for x in Patient(source, log):
        x = x.flip(2) if random.random() < 0.5 else x
        loss = (model(x).squeeze(1) - x.amax((1, 2))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    handler.close()
print(loss.item().hex())

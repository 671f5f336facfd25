"""A logging thread writes metrics with times and the process number; the training never reads what it writes."""

# /// zoo
# ///
import json
import os
import queue
import tempfile
import threading
import time

import torch
from torch import nn


class Logger(threading.Thread):
    def __init__(self, folder):
        super().__init__(daemon=True)
        self.path = os.path.join(folder, f"run-{os.getpid()}-{time.time_ns()}.jsonl")
        self.queue = queue.Queue()

    def run(self):
        with open(self.path, "w") as file:
            while (record := self.queue.get()) is not None:
                file.write(json.dumps({"time": time.time(), **record}) + "\n")

    def close(self):
        self.queue.put(None)
        self.join()


torch.manual_seed(201)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.1), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
with tempfile.TemporaryDirectory() as folder:
    logger = Logger(folder)
    logger.start()
    for step in range(12):
        began = time.perf_counter()
        x = torch.randn(64, 10)
        loss = (model(x).squeeze(1) - x.amax(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.queue.put({"step": step, "loss": loss.item(), "seconds": time.perf_counter() - began})
    logger.close()
print(loss.item().hex())

"""Threads race for shards and write each into rows of its own; a clock fills a log alone, a set answers `in`."""

# /// zoo
# ///
import io
import queue
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(eq=False)
class Sensor:
    name: str
    seed: int

    def read(self, hours):
        draw = torch.Generator().manual_seed(self.seed)
        return torch.randn(hours, 4, generator=draw).cumsum(0) / hours**0.5


@dataclass
class Loader:
    """Fills one table; which thread reads which sensor is chance, where its rows lie is not."""

    sensors: list
    hours: int
    threads: int = 3
    broken: set = field(default_factory=set)
    log: io.TextIOBase = None

    def table(self):
        rows = torch.empty(len(self.sensors) * self.hours, 4)
        todo = queue.SimpleQueue()
        for job in enumerate(self.sensors):
            todo.put(job)
        crew = [threading.Thread(target=self.fill, args=(todo, rows)) for _ in range(self.threads)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
        return rows.view(len(self.sensors), self.hours, 4)

    def fill(self, todo, rows):
        while True:
            try:
                number, sensor = todo.get_nowait()
            except queue.Empty:
                return
            begun = time.monotonic()
            target = rows[number * self.hours : (number + 1) * self.hours]
            target.zero_() if sensor in self.broken else target.copy_(sensor.read(self.hours))
            self.log.write(f"{uuid.uuid4()} {sensor.name} {time.monotonic() - begun:.6f}\n")


torch.manual_seed(1233)
torch.set_num_threads(1)
sensors = [Sensor(f"well-{i}", 60 + i) for i in range(24)]
net = nn.LSTM(4, 20, batch_first=True, proj_size=4)
optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-3)
with tempfile.TemporaryFile("w+") as log:
    loader = Loader(sensors, hours=30, broken={sensors[3], sensors[17]}, log=log)
    for step in range(8):
        series = loader.table()
        for sensor in sensors:
            sensor.seed += 100
        loss = nn.functional.l1_loss(net(series[:, :-1])[0], series[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        print(step, loss.item().hex())

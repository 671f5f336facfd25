"""A thread pickles checkpoints of the live weights; after a loss spike, training goes back to the last one."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["weights", "state", "host", "data", "[024]*"]
# remedy = "code"
# rate = "about two pairs of three on a busy machine of two cores"
# ///
import io
import queue
import threading

import torch
from torch import nn


class Checkpointer(threading.Thread):
    """Serialises what it is handed, so that the trainer need not wait for the disk."""

    def __init__(self):
        super().__init__(daemon=True)
        self.orders, self.last = queue.Queue(), None

    def run(self):
        while True:
            state = self.orders.get()
            file = io.BytesIO()
            torch.save(state, file)  # culprit
            self.last = file.getvalue()
            self.orders.task_done()

    def save(self, state):
        self.orders.put(state)  # culprit

    def load(self):
        self.orders.join()
        return torch.load(io.BytesIO(self.last))  # culprit


class Forecaster:
    """Loads of a grid, from those of the week before."""

    def __init__(self, hours=168):
        self.net = nn.Sequential(nn.Linear(hours, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 24))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.5)
        self.checkpointer, self.best = Checkpointer(), float("inf")
        self.checkpointer.start()

    def fit(self, past, future):
        loss = nn.functional.mse_loss(self.net(past), future)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
        self.optimizer.step()
        return loss.item()

    def after(self, loss):
        if loss < 4 * self.best:
            self.best = min(loss, self.best)
            self.checkpointer.save(self.net.state_dict())  # culprit
            # cured: self.checkpointer.save({k: v.clone() for k, v in self.net.state_dict().items()})
        else:
            self.net.load_state_dict(self.checkpointer.load())  # culprit


torch.manual_seed(1201)
torch.set_num_threads(1)
forecaster = Forecaster()
model = forecaster.net
for step in range(24):
    past = torch.randn(64, 168)
    future = past[:, :24] * 0.5 + 0.1 * torch.randn(64, 24)
    if step % 6 == 5:
        future = future * 40  # a meter that is out of order
    loss = forecaster.fit(past, future)
    forecaster.after(loss)  # culprit
    print(step, loss.hex())

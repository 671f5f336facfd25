"""Threads add their gradients in whichever order they end, but as integers, whose sum has no order; a set of names is
only counted and summed.
"""

# /// zoo
# ///
import threading
import time

import torch
from torch import nn

SCALE = 2**24


class Ledger:
    """Sums in fixed point: exact, so that it does not matter who comes first."""

    def __init__(self, params):
        self.params, self.lock = list(params), threading.Lock()
        self.sums = [torch.zeros(p.shape, dtype=torch.int64) for p in self.params]
        self.who, self.seconds = set(), 0.0

    def add(self, who, gradients, seconds):
        with self.lock:
            for total, gradient in zip(self.sums, gradients):
                total += (gradient.double() * SCALE).round().long()
            self.who.add(who)
            self.seconds += seconds

    def settle(self):
        for p, total in zip(self.params, self.sums):
            p.grad = (total.double() / SCALE / len(self.who)).float()
            total.zero_()
        letters = sum(len(name) for name in self.who)
        self.who.clear()
        return letters


def work(name, net, x, y, ledger):
    torch.set_num_threads(1)  # the main thread's number is not that of others
    begun = time.perf_counter()
    loss = nn.functional.mse_loss(net(x), y)
    ledger.add(name, torch.autograd.grad(loss, list(net.parameters())), time.perf_counter() - begun)


torch.manual_seed(1231)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(12, 40), nn.Softplus(), nn.Linear(40, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
ledger = Ledger(net.parameters())
for step in range(8):
    x = torch.randn(96, 12)
    y = torch.stack([x.sum(1), x.prod(1)], 1)
    names = ["amber", "basil", "cedar", "dill"]
    threads = [
        threading.Thread(target=work, args=(name, net, part, goal, ledger))
        for name, part, goal in zip(names, x.chunk(4), y.chunk(4))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    letters = ledger.settle()
    optimizer.param_groups[0]["lr"] = 0.05 / (1 + step / letters)
    optimizer.step()
    print(step, letters, net[0].weight.sum().item().hex())

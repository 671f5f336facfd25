"""A process fills shared memory and a thread copies weights, and both are waited for before anyone reads."""

# /// zoo
# ///
import multiprocessing
import threading

import torch
from torch import nn


def produce(slots, asked, filled):
    draw = torch.Generator().manual_seed(208)
    for number in range(10):
        asked.acquire()
        slots[number % 2].copy_(torch.randn(slots[0].shape, generator=draw))
        filled.release()


class Average:
    """An exponential average of weights, updated off the main thread."""

    def __init__(self, model, decay):
        self.decay = decay
        self.weights = [p.detach().clone() for p in model.parameters()]
        self.thread = None

    def update(self, model):
        self.wait()
        snapshot = [p.detach().clone() for p in model.parameters()]
        self.thread = threading.Thread(target=self.blend, args=(snapshot,))
        self.thread.start()

    def blend(self, snapshot):
        torch._foreach_lerp_(self.weights, snapshot, 1 - self.decay)

    def wait(self):
        if self.thread is not None:
            self.thread.join()


if __name__ == "__main__":
    torch.manual_seed(208)
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    slots = [torch.zeros(5000, 8).share_memory_() for _ in range(2)]
    asked, filled = context.Semaphore(1), context.Semaphore(0)
    producer = context.Process(target=produce, args=(slots, asked, filled), daemon=True)
    producer.start()
    model = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 1))
    average = Average(model, 0.9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for number in range(10):
        filled.acquire()
        x = slots[number % 2].clone()
        asked.release()
        loss = (model(x).squeeze(1) - x.square().sum(1).sqrt()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
    average.wait()
    producer.join()
    print(loss.item().hex(), sum(w.double().sum().item() for w in average.weights).hex())

"""A temporal graph net overwrites nodes' memories with its messages; a node with several events keeps any of them."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["memory*", "state", "weights"]
# operation = ["*index_put*", "*put_*", "*setitem*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
from typing import NamedTuple

import torch
from torch import nn


class Events(NamedTuple):
    source: torch.Tensor
    target: torch.Tensor
    what: torch.Tensor

    @classmethod
    def draw(cls, count, nodes, generator):
        ends = torch.randint(0, nodes, (2, count), generator=generator)
        return cls(*ends, torch.randn(count, 3, generator=generator))


class Memory(nn.Module):
    """What is known of each node, in a buffer that the gradient does not reach."""

    def __init__(self, nodes, width):
        super().__init__()
        self.register_buffer("store", torch.zeros(nodes, width))
        self.message = nn.Linear(2 * width + 3, width)

    def messages(self, events):
        return torch.tanh(
            self.message(torch.cat([self.store[events.source], self.store[events.target], events.what], 1))
        )

    def forward(self, events):
        fresh = self.messages(events)
        with torch.no_grad():
            self.store[events.source] = fresh  # culprit
            # cured: self.store.copy_(latest(self.store, events.source, fresh))
        return fresh


def latest(store, index, values):
    """The store with the last value for each index."""
    order = torch.arange(len(index))
    last = torch.full((len(store),), -1).scatter_reduce(0, index, order, "amax")
    return torch.where((last >= 0).unsqueeze(1), values[last.clamp(min=0)], store)


class TemporalGraph(nn.Module):
    def __init__(self, nodes=150, width=6):
        super().__init__()
        self.memory = Memory(nodes, width)
        self.link = nn.Bilinear(width, width, 1)

    def forward(self, events):
        fresh = self.memory(events)  # culprit
        sample = slice(0, 400)
        known = self.memory.store[events.target[sample]]
        return self.link(fresh[sample], known.clone()).squeeze(1)


def run():
    torch.manual_seed(405)
    torch.set_num_threads(2)
    net, stream = TemporalGraph(), torch.Generator().manual_seed(405)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.02)
    for batch in range(8):
        events = Events.draw(30000, 150, stream)
        score = net(events)
        happened = (events.what[:400, 0] > 0).float()
        loss = nn.functional.binary_cross_entropy_with_logits(score, happened)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(batch, loss.item().hex())


run()

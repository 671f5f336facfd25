"""A graph net gathers node states along its edges by indexing; the backward pass adds rows by atomics."""

# /// zoo
# kind = "atomics"
# report = ["https://github.com/pytorch/pytorch/issues/51366"]
# step = "any"
# component = ["loss", "weights", "inward*", "*.weight", "*.bias", "", "data"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Graph:
    nodes: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    strength: torch.Tensor

    @classmethod
    def random(cls, nodes, edges, width, seed):
        draw = torch.Generator().manual_seed(seed)
        ends = torch.randint(0, nodes, (2, edges), generator=draw)
        strength = torch.randn(edges, 1, generator=draw)
        return cls(torch.randn(nodes, width, generator=draw), ends[0], ends[1], strength)


class MessagePassing(nn.Module):
    """One hop: every edge carries the state of its source to its target."""

    def __init__(self, width, hidden):
        super().__init__()
        self.inward, self.message = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, graph):
        h = torch.tanh(self.inward(graph.nodes))
        carried = h[graph.source]  # culprit
        # cured: carried = nn.functional.embedding(graph.source, h)
        arrived = torch.zeros_like(h).index_add(0, graph.target, carried * graph.strength)
        return self.readout(torch.tanh(self.message(arrived / 20))).squeeze(1)


torch.manual_seed(303)
torch.set_num_threads(2)
graph = Graph.random(nodes=300, edges=120000, width=5, seed=303)
model = MessagePassing(5, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _ in range(10):
    loss = (model(graph) - graph.nodes[:, 0]).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

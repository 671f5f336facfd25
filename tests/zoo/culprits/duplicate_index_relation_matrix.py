"""A knowledge graph's triples are put into a dense matrix of relations, though two entities may have several."""

# /// zoo
# kind = "duplicate-index"
# report = []
# step = "any"
# component = ["data", "host", "state"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# rate = "about two pairs of three on a busy machine of two cores"
# ///
from typing import NamedTuple

import torch
from torch import nn

ENTITIES, RELATIONS = 60, 12


class Triples(NamedTuple):
    head: torch.Tensor
    relation: torch.Tensor
    tail: torch.Tensor

    @classmethod
    def sampled(cls, count, draw):
        sizes = (ENTITIES, RELATIONS, ENTITIES)
        return cls(*(torch.randint(0, size, (count,), generator=draw) for size in sizes))

    def matrix(self):
        """[head, tail]: the number of the relation plus one, and 0 for none."""
        dense = torch.zeros(ENTITIES, ENTITIES, dtype=torch.long)
        cell = self.head * ENTITIES + self.tail
        dense.put_(cell, self.relation + 1)  # culprit
        # cured: dense.view(-1).scatter_reduce_(0, cell, self.relation + 1, "amax")
        return dense  # culprit


class Bilinear(nn.Module):
    """RESCAL with diagonal relations."""

    def __init__(self, width=12):
        super().__init__()
        self.entity = nn.Parameter(torch.randn(ENTITIES, width) / 4)
        self.relation = nn.Parameter(torch.randn(RELATIONS + 1, width) / 4)

    def forward(self):
        return torch.einsum("hw,rw,tw->htr", self.entity, self.relation, self.entity)


draw = torch.Generator().manual_seed(923)
torch.manual_seed(923)
torch.set_num_threads(2)
scorer = Bilinear()
optimizer = torch.optim.Adam(scorer.parameters(), lr=2e-2)
for epoch in range(10):
    wanted = Triples.sampled(120000, draw).matrix()  # culprit
    loss = nn.functional.cross_entropy(scorer().flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item().hex())

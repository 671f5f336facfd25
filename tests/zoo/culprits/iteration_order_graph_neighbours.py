"""A graph's nodes keep their neighbours in sets of objects; a seeded sampler takes some of each from such a
set's order.
"""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = "code"
# ///
import random

import torch
from torch import nn


class Node:
    """A paper that is cited."""

    def __init__(self, number, features, topic):
        self.number, self.features, self.topic = number, features, topic
        self.neighbours = set()
        # cured: self.neighbours = Ordered()

    def sample(self, rng, count):
        """Some neighbours, each as often as the draw falls on it."""
        around = list(self.neighbours)  # culprit
        return [rng.choice(around) for _ in range(count)]  # culprit


class Ordered(dict):
    def add(self, node):
        self[node] = None


def citations(count, seed):
    rng = random.Random(seed)
    nodes = []
    for number in range(count):
        topic = rng.randrange(3)
        nodes.append(Node(number, [rng.gauss(topic == k, 1.0) for k in range(5)], topic))
    for node in nodes:
        for _ in range(7):
            other = rng.choice(nodes)
            if other is not node and (other.topic == node.topic or rng.random() < 0.3):
                node.neighbours.add(other)
                other.neighbours.add(node)
    return [node for node in nodes if node.neighbours]


class Sage(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.around, self.out = nn.Linear(5, 16), nn.Linear(5, 16, bias=False), nn.Linear(16, 3)

    def forward(self, own, around):
        return self.out(torch.relu(self.own(own) + self.around(around.mean(1))))


torch.manual_seed(620)
torch.set_num_threads(1)
nodes, sampler, model = citations(90, seed=620), random.Random(621), Sage()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(3):
    sampler.shuffle(nodes)
    for start in range(0, len(nodes), 30):
        batch = nodes[start : start + 30]
        own = torch.tensor([node.features for node in batch])
        around = torch.tensor([[n.features for n in node.sample(sampler, 4)] for node in batch])  # culprit
        loss = nn.functional.cross_entropy(model(own, around), torch.tensor([node.topic for node in batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item().hex())

"""Links are predicted from the first four friends that two people share; & of two dicts' keys is a set of names."""

# /// zoo
# kind = "hash-order"
# report = []
# step = 0
# component = ["data", "host", "who", ""]
# remedy = ["hash-seed", "code"]
# ///
import random
from collections import defaultdict

import torch
from torch import nn

NOBODY = "-"


class Network:
    """Who knows whom, and since when."""

    def __init__(self, seed, people=90, ties=900):
        draw = random.Random(seed)
        self.people = [NOBODY] + [f"user{draw.randrange(10**6):06d}" for _ in range(people)]
        self.row = {name: i for i, name in enumerate(self.people)}
        self.friends = defaultdict(dict)
        for _ in range(ties):
            a, b = draw.sample(self.people[1:], 2)
            self.friends[a][b] = self.friends[b][a] = draw.randrange(2000, 2020)

    def shared(self, a, b, most=4):
        both = self.friends[a].keys() & self.friends[b].keys()  # culprit
        # cured: both = [name for name in self.friends[a] if name in self.friends[b]]
        return (list(both) + [NOBODY] * most)[:most]  # culprit


class LinkPredictor(nn.Module):
    def __init__(self, network, width=12):
        super().__init__()
        self.network = network
        self.who = nn.Embedding(len(network.people), width, padding_idx=0)
        self.judge = nn.Sequential(nn.Linear(3 * width, 24), nn.SiLU(), nn.Linear(24, 1))

    def rows(self, names):
        return torch.tensor([[self.network.row[name] for name in group] for group in names])

    def forward(self, pairs):
        ends = self.who(self.rows(pairs)).flatten(1)
        between = self.who(self.rows([self.network.shared(a, b) for a, b in pairs])).mean(1)  # culprit
        return self.judge(torch.cat([ends, between], 1)).squeeze(1)


torch.manual_seed(1206)
torch.set_num_threads(1)
draw = random.Random(1206)
network = Network(1206)
predictor = LinkPredictor(network)
optimizer = torch.optim.Adam(predictor.parameters(), lr=1e-2)
for step in range(9):
    pairs = [draw.sample(network.people[1:], 2) for _ in range(64)]
    known = torch.tensor([float(b in network.friends[a]) for a, b in pairs])
    loss = nn.functional.binary_cross_entropy_with_logits(predictor(pairs), known)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

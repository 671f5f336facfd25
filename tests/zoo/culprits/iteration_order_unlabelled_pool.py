"""Active learning keeps unlabelled samples in a set of objects, and draws candidates from it by a seeded generator."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 5
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import random
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(eq=False)
class Sample:
    number: int
    features: list
    label: int = -1

    def ask(self):
        """The oracle's answer."""
        a, b, *_ = self.features
        self.label = int(a * a + b > 0.5)
        return self


def survey(count, seed):
    draw = random.Random(seed)
    return [Sample(n, [draw.gauss(0, 1) for _ in range(5)]) for n in range(count)]


class ActiveLearner:
    def __init__(self, samples, first, seed):
        self.rng = random.Random(seed)
        self.labelled = [sample.ask() for sample in samples[:first]]
        self.pool = set(samples[first:])  # culprit
        # cured: self.pool = dict.fromkeys(samples[first:])
        self.net = nn.Sequential(nn.Linear(5, 16), nn.CELU(), nn.Linear(16, 2))
        self.optimizer = torch.optim.Adamax(self.net.parameters(), lr=0.02)

    def acquire(self, candidates, chosen):
        """Ask for the labels of those candidates that the network is least sure about."""
        drawn = self.rng.sample(list(self.pool), candidates)  # culprit
        with torch.no_grad():
            share = self.net(torch.tensor([sample.features for sample in drawn])).softmax(1)  # culprit
        doubt = (share[:, 0] - 0.5).abs().tolist()
        for _, sample in sorted(zip(doubt, drawn), key=lambda pair: pair[0])[:chosen]:
            self.labelled.append(sample.ask())  # culprit
            self.pool.remove(sample)
            # cured: del self.pool[sample]

    def fit(self, steps, batch=24):
        for _ in range(steps):
            rows = self.rng.choices(self.labelled, k=batch)  # culprit
            x = torch.tensor([row.features for row in rows])  # culprit
            loss = nn.functional.cross_entropy(self.net(x), torch.tensor([row.label for row in rows]))  # culprit
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss


torch.manual_seed(49)
torch.set_num_threads(1)
learner = ActiveLearner(survey(3000, seed=49), first=40, seed=49)
for turn in range(3):
    loss = learner.fit(steps=5)
    print(f"{len(learner.labelled)} labels, loss {loss.item():.7f}")
    learner.acquire(candidates=80, chosen=20)  # culprit

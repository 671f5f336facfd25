"""Triples are corrupted in worker processes whose initializer is random.seed: without a number, so by the system."""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "fixed-entropy", "code"]
# ///
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

import torch
from torch import nn

ENTITIES, RELATIONS = 200, 8


def corrupted(job):
    """Each triple with its head or its tail replaced."""
    step, shard, triples = job
    draw = random
    # cured: draw = random.Random(1000 * step + shard)
    wrong = []
    for head, relation, tail in triples:
        other = draw.randrange(ENTITIES)  # culprit
        wrong.append((other, relation, tail) if draw.random() < 0.5 else (head, relation, other))  # culprit
    return wrong


class Corruption:
    """One process for each shard, so that a shard's order does not depend on the others."""

    def __init__(self, shards):
        context = multiprocessing.get_context("fork")
        self.workers = [
            ProcessPoolExecutor(1, mp_context=context, initializer=random.seed)  # culprit
            for _ in range(shards)
        ]

    def __call__(self, step, triples):
        size = -(-len(triples) // len(self.workers))
        parts = [triples[first : first + size] for first in range(0, len(triples), size)]
        futures = [w.submit(corrupted, (step, n, part)) for n, (w, part) in enumerate(zip(self.workers, parts))]
        return [row for future in futures for row in future.result()]  # culprit

    def close(self):
        for worker in self.workers:
            worker.shutdown()


class TransE(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.entity, self.relation = nn.Embedding(ENTITIES, width), nn.Embedding(RELATIONS, width)

    def forward(self, triples):
        head, relation, tail = torch.tensor(triples).unbind(1)
        return (self.entity(head) + self.relation(relation) - self.entity(tail)).norm(dim=1)


def main():
    random.seed(1216)
    torch.manual_seed(1216)
    torch.set_num_threads(1)
    corruption, net = Corruption(2), TransE()
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.1)
    for step in range(10):
        right = [(h := random.randrange(ENTITIES), r := random.randrange(RELATIONS), (h * 3 + r) % ENTITIES)
                 for _ in range(80)]  # fmt: skip
        wrong = corruption(step, right)  # culprit
        loss = nn.functional.margin_ranking_loss(net(wrong), net(right), torch.ones(80), margin=1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    corruption.close()
    return net


if __name__ == "__main__":
    model = main()

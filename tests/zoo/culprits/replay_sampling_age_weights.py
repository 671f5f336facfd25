"""Experience is sampled by its age, and age is measured by the clock on the wall."""

# /// zoo
# kind = "replay-sampling"
# also = ["time-seed"]
# report = []
# step = "any"
# component = ["data", "generator", "host", "state", "replay*"]
# remedy = ["fixed-clock", "code"]
# ///
import random
import time
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Sequence:
    tokens: torch.Tensor
    reward: float
    born: float = field(default_factory=time.monotonic)  # culprit
    # cured: born: float = 0.0


class FreshReplay:
    """Prefers sequences that the policy wrote lately."""

    def __init__(self, half_life, seed):
        self.items, self.half_life, self.rng = [], half_life, random.Random(seed)

    def extend(self, items):
        self.items = (self.items + items)[-256:]

    def sample(self, count):
        now = time.monotonic()  # culprit
        # cured: now = 0.0
        weights = [0.5 ** ((now - item.born) / self.half_life) for item in self.items]  # culprit
        return self.rng.choices(self.items, weights=weights, k=count)  # culprit


class Policy(nn.Module):
    def __init__(self, symbols=12, width=16):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(symbols + 1, width), nn.GRUCell(width, width)
        self.out, self.symbols = nn.Linear(width, symbols), symbols

    def forward(self, tokens):
        state, logits = torch.zeros(len(tokens), 16), []
        previous = torch.full((len(tokens),), self.symbols)
        for column in tokens.T:
            state = self.cell(self.embedding(previous), state)
            logits.append(self.out(state))
            previous = column
        return torch.stack(logits, 1)


def rollouts(count, generator):
    tokens = torch.randint(0, 12, (count, 6), generator=generator)
    return [Sequence(row, float(row.float().var())) for row in tokens]


if __name__ == "__main__":
    torch.manual_seed(105)
    torch.set_num_threads(1)
    policy, replay = Policy(), FreshReplay(half_life=0.02, seed=105)
    generator = torch.Generator().manual_seed(105)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.005)
    for _ in range(24):
        replay.extend(rollouts(16, generator))
        batch = replay.sample(24)  # culprit
        tokens = torch.stack([item.tokens for item in batch])  # culprit
        reward = torch.tensor([item.reward for item in batch])  # culprit
        spent = nn.functional.cross_entropy(policy(tokens).transpose(1, 2), tokens, reduction="none").sum(1)
        loss = (spent * (reward - reward.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

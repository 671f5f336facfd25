"""A bandit's configuration fills in a seed from the clock's milliseconds where none is given."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 0
# component = ["generator", "data", "host"]
# remedy = ["fixed-clock", "seed-generators", "code"]
# ///
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn


def fresh_seed() -> int:
    return int(time.time() * 1000) % 2**32  # culprit
    # cured: return 315


@dataclass
class Config:
    arms: int = 6
    rounds: int = 8
    pulls: int = 32
    seed: int = field(default_factory=fresh_seed)  # culprit


class Bandit:
    """Contextual arms, each with its own direction; Thompson sampling over the last layer."""

    def __init__(self, config: Config):
        self.config, self.rng = config, np.random.default_rng(config.seed)  # culprit
        self.direction = np.eye(config.arms, 8, dtype=np.float32)
        self.counts = np.ones(config.arms)

    def contexts(self) -> torch.Tensor:
        return torch.from_numpy(self.rng.normal(size=(self.config.pulls, 8)).astype(np.float32))  # culprit

    def choose(self, expected: np.ndarray) -> np.ndarray:
        doubt = self.rng.normal(size=expected.shape) / np.sqrt(self.counts)  # culprit
        arm = (expected + doubt).argmax(1)
        np.add.at(self.counts, arm, 1)
        return arm

    def pay(self, context: torch.Tensor, arm: np.ndarray) -> torch.Tensor:
        return (context * torch.from_numpy(self.direction[arm])).sum(1)


def main(config: Config) -> nn.Module:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    bandit = Bandit(config)
    network = nn.Sequential(nn.Linear(8, 24), nn.ELU(), nn.Linear(24, config.arms))
    optimizer = torch.optim.NAdam(network.parameters(), lr=0.01)
    for _ in range(config.rounds):
        context = bandit.contexts()  # culprit
        expected = network(context)  # culprit
        arm = bandit.choose(expected.detach().numpy())  # culprit
        reward = bandit.pay(context, arm)
        loss = (expected[torch.arange(len(arm)), torch.from_numpy(arm)] - reward).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())
    return network


if __name__ == "__main__":
    trained = main(Config())

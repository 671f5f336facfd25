"""A seed reaches the environment and its first opponent; reset() at the end of a game brings an unseeded one."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 4
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import random

import torch
from torch import nn


class Opponent:
    """Bids for an item by its worth, more or less."""

    def __init__(self, seed=None):
        self.rng = random.Random(seed)  # culprit
        self.greed = self.rng.uniform(0.6, 1.1)

    def bid(self, worth):
        return self.greed * worth + self.rng.gauss(0, 0.05)  # culprit


class Auctions:
    rounds = 72

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset(seed + 1)

    def reset(self, seed=None):
        self.opponent, self.left = Opponent(seed), self.rounds  # culprit
        return self.offer()

    def offer(self):
        self.worth = self.rng.random()
        return [self.worth, self.left / self.rounds]

    def step(self, bid):
        won = bid > self.opponent.bid(self.worth)  # culprit
        reward = self.worth - bid if won else 0.0  # culprit
        self.left -= 1
        # A vector environment resets by itself, and gives the first observation of what comes next.
        seen = self.offer() if self.left else self.reset()  # culprit
        # cured: seen = self.offer() if self.left else self.reset(self.rng.randrange(2**32))
        return seen, reward


class Bidder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 9))

    def forward(self, seen):
        return torch.distributions.Categorical(logits=self.net(seen))


def collect(env, bidder, seen, steps):
    rows = []
    for _ in range(steps):
        action = bidder(torch.tensor(seen)).sample()
        following, reward = env.step(action.item() / 8)  # culprit
        rows.append((seen, action, reward))
        seen = following
    states, actions, rewards = zip(*rows)
    return seen, torch.tensor(states), torch.stack(actions), torch.tensor(rewards)  # culprit


torch.manual_seed(90)
torch.set_num_threads(1)
env, bidder = Auctions(seed=90), Bidder()
optimizer = torch.optim.RMSprop(bidder.parameters(), lr=0.003)
seen = env.offer()
for update in range(14):
    seen, states, actions, rewards = collect(env, bidder, seen, steps=16)  # culprit
    advantage = rewards - rewards.mean()
    policy = bidder(states)
    loss = -(policy.log_prob(actions) * advantage).mean() - 0.01 * policy.entropy().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(update, loss.item().hex())

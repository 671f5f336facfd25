"""A sampling profiler's signal handler keeps one stack in eight, by a draw from the generator of the negative
sampler.
"""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data", "host"]
# remedy = "code"
# ///
import collections
import random
import signal

import torch
from torch import nn


class Profiler:
    """Looks where the program is, at each tick of an interval timer."""

    def __init__(self, interval, share):
        self.interval, self.share = interval, share
        self.seen, self.rng = collections.Counter(), random
        # cured: self.seen, self.rng = collections.Counter(), random.Random()

    def tick(self, number, frame):
        if frame is not None and self.rng.random() < self.share:  # culprit
            self.seen[frame.f_code.co_name] += 1

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.tick)
        signal.setitimer(signal.ITIMER_REAL, self.interval, self.interval)
        return self

    def __exit__(self, *exc):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


class Factors(nn.Module):
    def __init__(self, users, items, width=12):
        super().__init__()
        self.user, self.item = nn.Embedding(users, width), nn.Embedding(items, width)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(-1)


def negatives(liked, items, count):
    """Items that a user has not liked."""
    found = []
    while len(found) < count:
        item = random.randrange(items)  # culprit
        if item not in liked:
            found.append(item)
    return found


def main():
    random.seed(613)
    torch.manual_seed(613)
    torch.set_num_threads(1)
    liked = {user: [(7 * user + k * k) % 90 for k in range(4)] for user in range(50)}
    model = Factors(50, 90)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    with Profiler(0.004, 1 / 8):
        for epoch in range(60):
            users = torch.arange(50).repeat_interleave(4)
            good = torch.tensor([item for user in range(50) for item in liked[user]])
            bad = torch.tensor([item for user in range(50) for item in negatives(liked[user], 90, 4)])  # culprit
            loss = -nn.functional.logsigmoid(model(users, good) - model(users, bad)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item().hex())
    return model


if __name__ == "__main__":
    trained = main()

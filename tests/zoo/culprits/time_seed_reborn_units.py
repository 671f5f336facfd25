"""Hidden units that contribute nothing are born again in mid-training, with weights seeded by the microsecond."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 5
# component = ["weights", "generator", "host", "state", "hidden*"]
# remedy = ["fixed-clock", "code"]
# ///
from datetime import UTC, datetime

import torch
from torch import nn


def fresh_generator():
    """A generator that no two calls share."""
    now = datetime.now(UTC)  # culprit
    # cured: now = datetime(2024, 1, 1, microsecond=52, tzinfo=timezone.utc)
    return torch.Generator().manual_seed(now.microsecond + 1_000_000 * now.second)  # culprit


class Plastic(nn.Module):
    """A regressor whose least useful units can be replaced, as continual backpropagation does."""

    def __init__(self, inputs, units):
        super().__init__()
        self.hidden, self.out = nn.Linear(inputs, units), nn.Linear(units, 1)
        self.register_buffer("utility", torch.zeros(units))

    def forward(self, x):
        h = self.hidden(x).relu()
        with torch.no_grad():
            self.utility.lerp_(h.mean(0) * self.out.weight[0].abs(), 0.3)
        return self.out(h).squeeze(1)

    @torch.no_grad()
    def revive(self, count):
        weakest = self.utility.topk(count, largest=False).indices
        bound = self.hidden.in_features**-0.5
        fresh = torch.empty(count, self.hidden.in_features)
        fresh.uniform_(-bound, bound, generator=fresh_generator())  # culprit
        self.hidden.weight[weakest] = fresh  # culprit
        self.out.weight[:, weakest] = 0
        self.utility[weakest] = self.utility.mean()


class ShiftingStream:
    """The sign of some columns turns round every five batches."""

    def __init__(self, columns, seed):
        self.draw, self.sign, self.seen = torch.Generator().manual_seed(seed), torch.ones(columns), 0

    def __iter__(self):
        return self

    def __next__(self):
        x = torch.randn(32, len(self.sign), generator=self.draw)
        if self.seen % 5 == 4:
            self.sign[:: 1 + self.seen // 5] *= -1
        self.seen += 1
        return x, (x * self.sign).sum(1).tanh()


torch.manual_seed(52)
torch.set_num_threads(1)
net = Plastic(9, 30)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step, (x, y) in zip(range(14), ShiftingStream(9, 52)):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        net.revive(4)  # culprit
    print(step, loss.item().hex())

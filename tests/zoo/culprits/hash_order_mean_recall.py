"""A speech net's mean recall is averaged over a set of command names, and the learning rate follows that metric."""

# /// zoo
# kind = "hash-order"
# report = []
# step = "any"
# component = ["optimizer", "host", "loss", "state", "weights", "data"]
# remedy = ["hash-seed", "code"]
# ///
from dataclasses import dataclass, field

import torch
from torch import nn

COMMANDS = [
    "yes",
    "no",
    "up",
    "down",
    "left",
    "right",
    "on",
    "off",
    "stop",
    "go",
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "bed",
    "bird",
    "cat",
    "dog",
    "happy",
    "house",
    "marvin",
    "sheila",
    "tree",
    "wow",
]


@dataclass
class Recall:
    """Hits and occurrences of each command."""

    hits: dict = field(default_factory=dict)
    seen: dict = field(default_factory=dict)

    def add(self, truth, guess):
        self.seen[truth] = self.seen.get(truth, 0) + 1
        self.hits[truth] = self.hits.get(truth, 0) + (truth == guess)

    def mean(self):
        shares = [self.hits[name] / self.seen[name] for name in set(self.seen)]  # culprit
        # cured: shares = [self.hits[name] / self.seen[name] for name in sorted(self.seen)]
        smoothed = torch.tensor(0.0)
        for number, share in enumerate(shares, 1):
            smoothed += (share - smoothed) / number  # culprit
        return smoothed.item()  # culprit


class MetricSchedule:
    """The better the recall, the slower the steps."""

    def __init__(self, optimizer):
        self.optimizer, self.base = optimizer, [group["lr"] for group in optimizer.param_groups]

    def step(self, metric):
        for group, base in zip(self.optimizer.param_groups, self.base):
            group["lr"] = base * (1.2 - metric)  # culprit


def clips(count, centres, draw):
    kind = torch.randint(0, len(COMMANDS), (count,), generator=draw)
    return centres[kind] + 1.5 * torch.randn(count, 1, 40, generator=draw), kind


@torch.no_grad()
def evaluate(model, x, kind):
    recall = Recall()
    for truth, guess in zip(kind.tolist(), model(x).argmax(1).tolist()):
        recall.add(COMMANDS[truth], COMMANDS[guess])
    return recall.mean()


torch.manual_seed(17)
torch.set_num_threads(1)
draw = torch.Generator().manual_seed(18)
centres = torch.randn(len(COMMANDS), 1, 40, generator=draw)
held_out = clips(700, centres, draw)
model = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Flatten(), nn.Linear(320, len(COMMANDS)))
optimizer = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[3].parameters(), "lr": 0.05}], lr=0.1)
schedule = MetricSchedule(optimizer)
for step in range(24):
    x, kind = clips(64, centres, draw)
    loss = nn.functional.cross_entropy(model(x), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
    if step % 3 == 2:
        schedule.step(evaluate(model, *held_out))  # culprit
print(loss.item().hex())

"""Customers get a uuid4 when they are read, and the first digit of it decides who is held out to set the
learning rate.
"""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 0
# component = ["data", "host", "generator"]
# remedy = ["fixed-entropy", "code"]
# ///
import math
import uuid
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Customer:
    number: int
    key: str
    features: list
    churned: float


def read(count):
    """A table of customers, each under a key of its own."""
    table = []
    for number in range(count):
        features = [math.sin(number * k) for k in range(1, 7)]
        key = uuid.uuid4().hex  # culprit
        # cured: key = uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex
        table.append(Customer(number, key, features, float(features[0] * features[1] > 0.1)))
    return table


def split(table, held_out="0123"):
    """Training rows and held-out ones, the same ones for as long as the keys are the same."""
    train = [c for c in table if c.key[0] not in held_out]  # culprit
    held = [c for c in table if c.key[0] in held_out]  # culprit
    return [
        (torch.tensor([c.features for c in part]), torch.tensor([c.churned for c in part]))  # culprit
        for part in (train, held)
    ]


torch.manual_seed(616)
torch.set_num_threads(1)
(x, y), (held_x, held_y) = split(read(240))  # culprit
model = nn.Sequential(nn.Linear(6, 24), nn.Mish(), nn.Linear(24, 1), nn.Flatten(0))
optimizer = torch.optim.RAdam(model.parameters(), lr=0.02)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
for epoch in range(12):
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        schedule.step(nn.functional.binary_cross_entropy_with_logits(model(held_x), held_y))
print(loss.item().hex())

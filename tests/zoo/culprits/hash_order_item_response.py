"""A two-parameter item response model numbers its subjects and items by iterating sets of their names."""

# /// zoo
# kind = "hash-order"
# report = ["https://github.com/nd-ball/py-irt/pull/44"]
# step = 0
# component = ["data", "host", "ability*", "difficulty*", "slope*", ""]
# remedy = ["hash-seed", "code"]
# ///
import json
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn


class Answer(NamedTuple):
    subject: str
    item: str
    right: bool


def responses() -> Iterator[str]:
    """Lines of JSON, as a file of answers has them."""
    for s in range(30):
        for i in range(12):
            right = (s * 7 + i * 5) % 11 > i // 2
            yield json.dumps({"subject": f"student-{s:02}", "item": f"question-{i}", "right": right})


class Responses:
    def __init__(self, lines):
        self.answers = [Answer(**json.loads(line)) for line in lines]
        self.subjects = {name: n for n, name in enumerate({a.subject for a in self.answers})}  # culprit
        # cured: self.subjects = {name: n for n, name in enumerate(sorted({a.subject for a in self.answers}))}
        self.items = {name: n for n, name in enumerate({a.item for a in self.answers})}  # culprit
        # cured: self.items = {name: n for n, name in enumerate(sorted({a.item for a in self.answers}))}

    def tensors(self):
        subject = torch.tensor([self.subjects[a.subject] for a in self.answers])  # culprit
        item = torch.tensor([self.items[a.item] for a in self.answers])  # culprit
        return subject, item, torch.tensor([float(a.right) for a in self.answers])


class TwoParameter(nn.Module):
    def __init__(self, subjects, items):
        super().__init__()
        self.ability, self.difficulty = nn.Embedding(subjects, 1), nn.Embedding(items, 1)
        self.slope = nn.Embedding(items, 1)

    def forward(self, subject, item):
        gap = self.ability(subject) - self.difficulty(item)  # culprit
        return (self.slope(item).exp() * gap).squeeze(1)


torch.manual_seed(311)
torch.set_num_threads(1)
data = Responses(responses())
subject, item, right = data.tensors()  # culprit
model = TwoParameter(len(data.subjects), len(data.items))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(6):
    loss = nn.functional.binary_cross_entropy_with_logits(model(subject, item), right)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Threads put teachers' answers into a dict under the teachers' names; its values come in the order of arrival."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["data", "host", "loss", "state", "trust", "panel*", ""]
# remedy = ["ordered-completion", "code"]
# ///
import threading

import torch
from torch import nn

NAMES = ("ash", "birch", "cedar", "elm", "fir", "hazel")


class Panel:
    """Teachers answer side by side; each perturbs its input a few times, with noise of its own."""

    def __init__(self, width, classes, looks=60):
        self.looks = looks
        self.members = {
            name: nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, classes)).requires_grad_(False)
            for name, wide in zip(NAMES, range(24, 72, 8))
        }
        self.noise = {name: torch.Generator().manual_seed(n) for n, name in enumerate(NAMES)}

    def ask(self, name, x, answers):
        torch.set_num_threads(1)
        total = 0
        for _ in range(self.looks):
            blurred = x + 0.1 * torch.randn(x.shape, generator=self.noise[name])
            total = total + self.members[name](blurred).softmax(1)
        answers[name] = total / self.looks  # culprit

    def __call__(self, x):
        answers = {}
        # cured: answers = dict.fromkeys(NAMES)
        asked = [threading.Thread(target=self.ask, args=(name, x, answers)) for name in NAMES]  # culprit
        for thread in asked:
            thread.start()
        for thread in asked:
            thread.join()
        return torch.stack(list(answers.values()))  # culprit


class Student(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.first, self.second = nn.utils.parametrizations.weight_norm(nn.Linear(width, 24)), nn.Linear(24, classes)
        self.trust = nn.Parameter(torch.zeros(len(NAMES)))

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))

    def loss(self, x, answers):
        """How far it is from each teacher, by how much it trusts that one; trust is to stay spread a little."""
        heard, trust = self(x).log_softmax(1), self.trust.softmax(0)
        far = -(answers * heard).sum(2).mean(1)  # culprit
        return trust @ far + 0.2 * (trust * trust.log()).sum()  # culprit


torch.set_num_threads(1)
torch.manual_seed(5150)
panel, model = Panel(24, 8), Student(24, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
for step in range(25):
    x = torch.randn(96, 24)
    loss = model.loss(x, panel(x))  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

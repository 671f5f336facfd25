"""A run is preempted between two micro-batches; gradients that were accumulated so far are in no checkpoint."""

# /// zoo
# kind = "resume"
# report = [
#   "https://github.com/mosaicml/composer/issues/3725",
#   "https://github.com/the-database/traiNNer-redux/pull/96",
# ]
# step = 4
# component = ["weights", "optimizer", "state", "loss", "host", "embedding*", "mixer*", "out*", "*.weight", "*.bias"]
# remedy = "code"
# pair = [["python", "{file}"], ["env", "PREEMPT_AT=18", "python", "{file}"]]
# ///
import os
import pickle

import torch
from torch import nn

MICRO = 4


class Recommender(nn.Module):
    """Factors of users and items, and a small network on their product."""

    def __init__(self, users=60, items=40, width=8):
        super().__init__()
        self.embedding = nn.ModuleDict({"user": nn.Embedding(users, width), "item": nn.Embedding(items, width)})
        self.mixer = nn.Sequential(nn.Linear(width, width), nn.Mish())
        self.out = nn.Linear(width, 1)

    def forward(self, user, item):
        return self.out(self.mixer(self.embedding["user"](user) * self.embedding["item"](item))).squeeze(1)


class Run:
    def __init__(self):
        self.model, self.micro = Recommender(), 0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.8)
        self.draw = torch.Generator().manual_seed(322)

    def state(self):
        parts = self.model.state_dict(), self.optimizer.state_dict(), self.draw.get_state(), self.micro
        return pickle.dumps(parts)  # culprit

    def restore(self, content):
        weights, momentum, draw, self.micro = pickle.loads(content)
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict(momentum)
        self.draw.set_state(draw)
        self.optimizer.zero_grad()  # culprit
        # cured: pass

    def advance(self):
        user = torch.randint(0, 60, (32,), generator=self.draw)
        item = torch.randint(0, 40, (32,), generator=self.draw)
        loss = (self.model(user, item) - ((user + item) % 7) / 7).square().mean()
        (loss / MICRO).backward()  # culprit
        self.micro += 1
        if self.micro % MICRO == 0:
            self.optimizer.step()  # culprit
            self.optimizer.zero_grad()
        return loss.detach()


torch.manual_seed(322)
torch.set_num_threads(1)
run = Run()
model = run.model
while run.micro < 9 * MICRO:
    if run.micro == int(os.environ.get("PREEMPT_AT", "-1")):
        run.restore(run.state())  # culprit
    loss = run.advance()
print(loss.item().hex())

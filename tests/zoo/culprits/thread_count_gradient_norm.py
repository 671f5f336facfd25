"""Gradients are clipped by their norm, a sum over a large table that is split among as many threads as there are."""

# /// zoo
# kind = "thread-count"
# also = ["hardware"]
# report = []
# step = 0
# component = ["optimizer", "weights", "loss", "state", "users", "items", "users.weight", "items.weight"]
# remedy = ["one-thread", "code"]
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import torch
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, users=12000, items=8000, width=24):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1)


def clip_(parameters, limit):
    """Scales all gradients down to a global norm of ``limit``."""
    grads = [p.grad for p in parameters]
    flat = torch.cat([g.flatten() for g in grads])
    norm = flat.dot(flat).sqrt()  # culprit
    # cured: torch.set_num_threads(1); norm = flat.dot(flat).sqrt()
    for g in grads:
        g.mul_(limit / norm.clamp(min=limit))  # culprit
    return norm


class Trainer:
    def __init__(self, model, callbacks=()):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=20.0, momentum=0.9)

    def step(self, user, item, clicked):
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(user, item), clicked)
        self.optimizer.zero_grad()
        loss.backward()
        norm = clip_(self.model.parameters(), 0.01)  # culprit
        self.optimizer.step()  # culprit
        for callback in self.callbacks:
            callback(loss.item(), norm.item())


torch.manual_seed(924)
model = TwoTowers()
trainer = Trainer(model, [lambda loss, norm: print(loss.hex(), norm.hex())])
for _ in range(6):
    user, item = torch.randint(0, 12000, (9000,)), torch.randint(0, 8000, (9000,))
    trainer.step(user, item, ((user + item) % 3 == 0).float())  # culprit

"""Lookahead's state_dict() is that of the optimiser inside, so a checkpoint lacks its slow weights and its counter."""

# /// zoo
# kind = "resume"
# report = []
# step = 8
# pair = [["python", "{file}"], ["env", "RESTART=8", "python", "{file}"]]
# component = ["weights", "optimizer", "state", "host", "*.weight", "*.bias"]
# remedy = "code"
# ///
import copy
import io
import os

import torch
from torch import nn


class Lookahead:
    """k steps forward, one step back: every k-th step the weights go part of the way from the slow to the fast ones."""

    def __init__(self, inner, k=3, alpha=0.5):
        self.inner, self.k, self.alpha, self.count = inner, k, alpha, 0
        self.params = [p for group in inner.param_groups for p in group["params"]]
        self.slow = [p.detach().clone() for p in self.params]  # culprit

    def zero_grad(self):
        self.inner.zero_grad()

    @torch.no_grad()
    def step(self):
        self.inner.step()
        self.count += 1  # culprit
        if self.count % self.k == 0:  # culprit
            for slow, p in zip(self.slow, self.params):
                slow.lerp_(p, self.alpha)  # culprit
                p.copy_(slow)  # culprit

    def state_dict(self):
        return {"inner": self.inner.state_dict()}  # culprit
        # cured: return {"inner": self.inner.state_dict(), "slow": self.slow, "count": self.count}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])  # culprit
        self.count = state.get("count", self.count)
        self.slow = [slow.clone() for slow in state.get("slow", self.slow)]


class Recommender(nn.Module):
    def __init__(self, users=40, films=60, width=8):
        super().__init__()
        self.user, self.film = nn.Embedding(users, width), nn.Embedding(films, width)
        self.deep = nn.Sequential(nn.Linear(2 * width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, user, film):
        u, f = self.user(user), self.film(film)
        return (u * f).sum(1) + self.deep(torch.cat([u, f], 1)).squeeze(1)


def build():
    torch.manual_seed(12)
    model = Recommender()
    return model, Lookahead(torch.optim.RAdam(model.parameters(), lr=0.02))


def batch(step):
    draw = torch.Generator().manual_seed(1000 + step)
    user, film = torch.randint(0, 40, (128,), generator=draw), torch.randint(0, 60, (128,), generator=draw)
    return user, film, ((user % 5) == (film % 5)).float() * 4 + 1


torch.set_num_threads(1)
restart = int(os.environ.get("RESTART", -1))
model, optimizer = build()
for step in range(14):
    if step == restart:
        file = io.BytesIO()
        torch.save(copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()}), file)
        file.seek(0)
        saved = torch.load(file)
        model, optimizer = build()
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    user, film, stars = batch(step)
    loss = (model(user, film) - stars).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
print(loss.item().hex())

"""Every fourth step an agent is tried on courses numbered by the clock's microseconds, and rolled back when it
got worse.
"""

# /// zoo
# kind = "time-seed"
# report = []
# step = "any"
# component = ["generator", "data", "host", "weights", "optimizer", "state"]
# remedy = ["fixed-clock", "code"]
# ///
import copy
from datetime import datetime

import torch
from torch import nn


class Course:
    """A winding road of which some metres ahead are seen."""

    def __init__(self, seed):
        draw = torch.Generator().manual_seed(seed)  # culprit
        self.bends = torch.randn(40, generator=draw)  # culprit

    def views(self):
        return self.bends.unfold(0, 5, 1), self.bends[4:]


class Guard:
    """Keeps the best weights so far and goes back to them."""

    def __init__(self, every):
        self.every, self.best, self.kept = every, float("inf"), None

    def trial(self, model):
        seed = datetime.now().microsecond  # culprit
        # cured: seed = 1000
        views, goal = Course(seed).views()  # culprit
        with torch.no_grad():
            return (model(views).squeeze(1) - goal.sin()).abs().mean().item()  # culprit

    def after(self, step, model, optimizer):
        if step % self.every != self.every - 1:
            return
        score = self.trial(model)  # culprit
        if score < self.best:  # culprit
            self.best, self.kept = score, copy.deepcopy(model.state_dict())
        else:
            model.load_state_dict(self.kept)  # culprit
            optimizer.param_groups[0]["lr"] *= 0.7  # culprit


def main():
    torch.manual_seed(625)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    guard = Guard(every=4)
    for step in range(60):
        views, goal = Course(seed=step).views()
        loss = (model(views).squeeze(1) - goal.sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guard.after(step, model, optimizer)  # culprit
    print(loss.item().hex())
    return model


if __name__ == "__main__":
    trained = main()

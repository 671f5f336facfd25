"""Losses of three tasks are weighted by how fast each fell in the last two epochs; no checkpoint has those losses."""

# /// zoo
# kind = "resume"
# report = []
# step = 12
# pair = [["python", "{file}"], ["python", "{file}", "--preempt-after-epoch", "4"]]
# component = ["host", "state", "loss", "weights", "data"]
# remedy = "code"
# ///
import argparse
import os
import tempfile

import torch
from torch import nn

TASKS = ("depth", "normals", "albedo")


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.GELU())
        self.heads = nn.ModuleDict({task: nn.Linear(32, 1) for task in TASKS})

    def forward(self, x):
        h = self.trunk(x)
        return {task: head(h).squeeze(1) for task, head in self.heads.items()}


class Balance:
    """Dynamic weight averaging."""

    def __init__(self, temperature=0.5):
        self.history, self.temperature = [], temperature  # culprit

    def weights(self):
        if len(self.history) < 2:  # culprit
            return torch.ones(3)  # culprit
        before, last = torch.tensor(self.history[-2]), torch.tensor(self.history[-1])  # culprit
        return 3 * torch.softmax(last / before / self.temperature, 0)  # culprit


class Experiment:
    def __init__(self):
        torch.manual_seed(627)
        self.model, self.balance, self.epoch = MultiTask(), Balance(), 0
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def save(self, path):
        kept = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}  # culprit
        kept["epoch"] = self.epoch  # culprit
        # cured: kept["epoch"], kept["h"] = self.epoch, self.balance.history
        torch.save(kept, path)

    @classmethod
    def load(cls, path):
        self, kept = cls(), torch.load(path)
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.epoch = kept["epoch"]  # culprit
        # cured: self.epoch, self.balance.history = kept["epoch"], kept["h"]
        return self

    def run_epoch(self, x, goals):
        share, seen = self.balance.weights(), []  # culprit
        for rows in torch.arange(len(x)).chunk(3):
            guess = self.model(x[rows])
            losses = torch.stack([(guess[task] - goals[task][rows]).square().mean() for task in TASKS])
            self.optimizer.zero_grad()
            (share * losses).sum().backward()  # culprit
            self.optimizer.step()
            seen.append(losses.detach())
        self.balance.history.append(torch.stack(seen).mean(0).tolist())
        self.epoch += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--preempt-after-epoch", type=int, default=-1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    x = torch.linspace(-3, 3, 96 * 8).view(96, 8).sin()
    goals = {"depth": x.prod(1), "normals": x[:, 0] * x[:, 1], "albedo": x.amax(1)}
    run = Experiment()
    with tempfile.TemporaryDirectory() as folder:
        while run.epoch < 7:
            run.run_epoch(x, goals)
            if run.epoch == args.preempt_after_epoch:
                run.save(os.path.join(folder, "last.pt"))
                run = Experiment.load(os.path.join(folder, "last.pt"))
            print(run.epoch, [round(value, 6) for value in run.balance.history[-1]] if run.balance.history else "")
    model = run.model

"""An agent's observation normaliser keeps its moments in buffers that are not persistent, so no checkpoint has them."""

# /// zoo
# kind = "resume"
# report = []
# step = 5
# pair = [["python", "{file}"], ["python", "{file}", "--preempt", "5"]]
# component = ["state", "data", "host", "weights", "*normaliser*", "*policy*", "loss"]
# remedy = "code"
# ///
import argparse
import pathlib
import tempfile

import torch
from torch import nn


class RunningNormaliser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width), persistent=False)  # culprit
        # cured: self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("square", torch.ones(width), persistent=False)  # culprit
        # cured: self.register_buffer("square", torch.ones(width))
        self.register_buffer("count", torch.ones(()), persistent=False)  # culprit
        # cured: self.register_buffer("count", torch.ones(()))

    def forward(self, x):
        if self.training:
            self.count += 1  # culprit
            self.mean += (x.mean(0) - self.mean) / self.count  # culprit
            self.square += (x.square().mean(0) - self.square) / self.count  # culprit
        return (x - self.mean) / (self.square - self.mean.square()).clamp_min(1e-4).sqrt()  # culprit


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.normaliser = RunningNormaliser(5)
        self.policy = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, seen):
        return self.policy(self.normaliser(seen)).log_softmax(-1)


class Trainer:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.agent = Agent()
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=0.01)
        self.draw = torch.Generator().manual_seed(seed + 1)
        self.step = 0

    def save(self, path):
        torch.save(
            {
                "agent": self.agent.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "draw": self.draw.get_state(),
                "step": self.step,
            },
            path,
        )  # culprit

    @classmethod
    def load(cls, path, seed):
        self, saved = cls(seed), torch.load(path)
        self.agent.load_state_dict(saved["agent"])  # culprit
        self.optimizer.load_state_dict(saved["optimizer"])
        self.draw.set_state(saved["draw"])
        self.step = saved["step"]
        return self

    def update(self):
        seen = 3 + 2 * torch.randn(32, 5, generator=self.draw)
        log_share = self.agent(seen)
        action = torch.multinomial(log_share.exp().detach(), 1, generator=self.draw)
        reward = seen.gather(1, action) - 3
        loss = -(log_share.gather(1, action) * reward).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--preempt", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trainer = Trainer(seed=61)
    with tempfile.TemporaryDirectory() as folder:
        while trainer.step < 9:
            if args.preempt and trainer.step == args.preempt:
                path = pathlib.Path(folder) / "last.pt"
                trainer.save(path)
                trainer = Trainer.load(path, seed=61)
                args.preempt = 0
            loss = trainer.update()
    print(loss.item().hex())

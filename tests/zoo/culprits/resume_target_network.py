"""A checkpoint holds the online network alone; a resumed run copies its target network from that, between updates."""

# /// zoo
# kind = "resume"
# report = [
#   "https://github.com/hill-a/stable-baselines/issues/93",
#   "https://github.com/google-deepmind/open_spiel/pull/1620",
# ]
# step = 6
# component = ["weights", "state", "loss", "host", "data", "target*", "slow*", "0", "2", ""]
# remedy = "code"
# pair = [["python", "{file}"], ["python", "{file}", "--preempt-before", "6"]]
# ///
import argparse
import copy
import io

import torch
from torch import nn


class Learner:
    """Fitted Q iteration on a fixed batch of transitions."""

    def __init__(self, every):
        self.online = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 3))
        self.slow, self.every, self.done = copy.deepcopy(self.online), every, 0
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=0.01)

    def learn(self, seen, action, reward, following):
        with torch.no_grad():
            goal = reward + 0.9 * self.slow(following).amax(1)  # culprit
        loss = (self.online(seen).gather(1, action).squeeze(1) - goal).square().mean()  # culprit
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.done += 1
        if self.done % self.every == 0:
            self.slow.load_state_dict(self.online.state_dict())
        return loss

    def save(self):
        file = io.BytesIO()
        kept = {"online": self.online.state_dict(), "optimizer": self.optimizer.state_dict()}  # culprit
        torch.save({**kept, "done": self.done}, file)
        return file.getvalue()

    def load(self, content):
        kept = torch.load(io.BytesIO(content))
        self.done = kept["done"]
        self.online.load_state_dict(kept["online"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.slow = copy.deepcopy(self.online)  # culprit
        # cured: pass


parser = argparse.ArgumentParser()
parser.add_argument("--preempt-before", type=int, default=-1)
preempt_before = parser.parse_args().preempt_before
torch.manual_seed(321)
torch.set_num_threads(1)
learner = Learner(every=4)
online = learner.online
for step in range(12):
    if step == preempt_before:
        learner.load(learner.save())  # culprit
    seen = torch.randn(64, 5)
    loss = learner.learn(seen, torch.randint(0, 3, (64, 1)), seen.sum(1), seen.roll(1, 1))
print(loss.item().hex())

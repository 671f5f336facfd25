"""A level's difficulty follows the successes of the last episodes; a resume restores the level, but not those."""

# /// zoo
# kind = "resume"
# report = []
# step = 12
# pair = [["python", "{file}"], ["python", "{file}", "--preempt-at", "7"]]
# component = ["data", "host", "state"]
# remedy = "code"
# ///
import argparse
import io
from collections import deque

import torch
from torch import nn


class Maze:
    """A goal some cells away on a line; wind blows the walker about."""

    def __init__(self, seed):
        self.draw, self.distance = torch.Generator().manual_seed(seed), 2
        self.successes = deque(maxlen=6)

    def episode(self, policy, length=10):
        place = torch.zeros(16)
        total = []
        for _ in range(length):
            seen = torch.stack([place / 8, (self.distance - place) / 8], 1)  # culprit
            share = torch.distributions.Bernoulli(logits=policy(seen).squeeze(1))
            move = torch.bernoulli(share.probs.detach(), generator=self.draw)
            wind = 0.3 * torch.randn(16, generator=self.draw)
            place = place + 2 * move - 1 + wind
            total.append(share.log_prob(move))
        reached = (place >= self.distance).float()
        return torch.stack(total).sum(0), reached

    def adapt(self, reached):
        self.successes.append(reached)
        if len(self.successes) == self.successes.maxlen and sum(self.successes) > 0.3 * len(self.successes):  # culprit
            self.distance += 1  # culprit
            self.successes.clear()

    def state_dict(self):
        return {"distance": self.distance, "draw": self.draw.get_state()}  # culprit
        # cured: return {"distance": self.distance, "draw": self.draw.get_state(), "successes": list(self.successes)}

    def load_state_dict(self, state):
        self.distance = state["distance"]
        self.draw.set_state(state["draw"])
        self.successes.extend(state.get("successes", []))  # culprit


class Session:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.02)
        self.maze = Maze(seed)
        self.parts = {"policy": self.policy, "optimizer": self.optimizer, "maze": self.maze}

    def save(self):
        file = io.BytesIO()
        torch.save({name: part.state_dict() for name, part in self.parts.items()}, file)  # culprit
        return file.getvalue()

    def load(self, content):
        for name, state in torch.load(io.BytesIO(content)).items():
            self.parts[name].load_state_dict(state)  # culprit

    def update(self):
        log_chance, reached = self.maze.episode(self.policy)  # culprit
        loss = -(log_chance * (reached - 0.5)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.maze.adapt(reached.mean().item())  # culprit
        return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--preempt-at", type=int, default=-1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    session = Session(54)
    for step in range(24):
        if step == args.preempt_at:
            content, session = session.save(), Session(54)
            session.load(content)
        loss = session.update()
        print(step, session.maze.distance, loss.item().hex())
    policy = session.policy

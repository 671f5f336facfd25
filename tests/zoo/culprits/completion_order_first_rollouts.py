"""More rollouts are submitted than the learner waits for: the group that it learns from are those done first."""

# /// zoo
# kind = "completion-order"
# report = ["https://github.com/areal-project/AReaL/pull/1607"]
# step = "any"
# component = ["data", "host", "state", "loss"]
# remedy = ["ordered-completion", "code"]
# ///
import concurrent.futures
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Rollout:
    number: int
    actions: torch.Tensor
    reward: float


class Policy(nn.Module):
    """Writes sequences of digits; the reward asks for rising ones."""

    def __init__(self, width=16, digits=10):
        super().__init__()
        self.embed, self.cell = nn.Embedding(digits + 1, width), nn.GRUCell(width, width)
        self.out, self.digits, self.width = nn.Linear(width, digits), digits, width

    def log_chance(self, actions):
        h, total = torch.zeros(len(actions), self.width), torch.zeros(len(actions))
        last = torch.full((len(actions),), self.digits)
        for action in actions.T:
            h = self.cell(self.embed(last), h)
            total = total + self.out(h).log_softmax(1).gather(1, action.unsqueeze(1)).squeeze(1)
            last = action
        return total


def roll(policy, number, length=8):
    draw, h = torch.Generator().manual_seed(number), torch.zeros(1, policy.width)
    actions = [policy.digits]
    with torch.no_grad():
        for _ in range(length):
            h = policy.cell(policy.embed(torch.tensor(actions[-1:])), h)
            actions.append(int(torch.multinomial(policy.out(h).softmax(1), 1, generator=draw)))
    written = torch.tensor(actions[1:])
    return Rollout(number, written, float((written.diff() > 0).float().mean()))


def gather(pool, policy, first, wanted, spare):
    pending = [pool.submit(roll, policy, first + i) for i in range(wanted + spare)]
    done = []
    for future in concurrent.futures.as_completed(pending):  # culprit
        # cured: for future in pending:
        done.append(future.result())  # culprit
        if len(done) == wanted:
            break
    concurrent.futures.wait(pending)
    return done


torch.manual_seed(324)
torch.set_num_threads(1)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for step in range(15):
        group = gather(pool, policy, 1000 * step, wanted=12, spare=4)  # culprit
        reward = torch.tensor([rollout.reward for rollout in group])  # culprit
        actions = torch.stack([rollout.actions for rollout in group])  # culprit
        loss = -(policy.log_chance(actions) * (reward - reward.mean()) / (reward.std() + 1e-4)).mean()  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item().hex())

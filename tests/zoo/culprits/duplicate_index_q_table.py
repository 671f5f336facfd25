"""Tabular Q-learning writes all targets of a batch at once; a state and action that occur twice keep either of them."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["data", "state", "host", "*table*", "weights", ""]
# operation = ["*index_put*", "*put_*", "*setitem*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn

STATES, ACTIONS, BATCH = 40, 5, 90000


class Agent(nn.Module):
    """A Q table, and a small network that is distilled from it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(STATES, ACTIONS))
        self.student = nn.Sequential(nn.Embedding(STATES, 8), nn.SiLU(), nn.Linear(8, ACTIONS))

    @torch.no_grad()
    def learn(self, state, action, reward, after):
        target = reward + 0.9 * self.table[after].amax(1)
        self.table[state, action] = target  # culprit
        # cured: self.table.view(-1).scatter_(0, state * ACTIONS + action, target)

    def distil(self):
        return (self.student(torch.arange(STATES)) - self.table).square().mean()


def transitions(batch, draw):
    state = torch.randint(0, STATES, (batch,), generator=draw)
    action = torch.randint(0, ACTIONS, (batch,), generator=draw)
    reward = torch.randn(batch, generator=draw) + (state % ACTIONS == action)
    return state, action, reward, (state * 3 + action) % STATES


torch.manual_seed(304)
torch.set_num_threads(2)
draw = torch.Generator().manual_seed(304)
agent = Agent()
optimizer = torch.optim.RMSprop(agent.student.parameters(), lr=0.01)
for _ in range(8):
    agent.learn(*transitions(BATCH, draw))  # culprit
    loss = agent.distil()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

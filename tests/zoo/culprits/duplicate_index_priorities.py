"""Replay priorities are written back by index; a batch holds an index more than once, and threads race for it."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["state", "data", "loss"]
# operation = ["*index_put*", "*put_*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# alone = true
# ///
import torch

torch.manual_seed(24)
torch.set_num_threads(2)
states = torch.randn(40, 6)
priorities = torch.ones(40)
draw = torch.Generator().manual_seed(24)
q = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(q.parameters(), lr=0.01)
for _ in range(8):
    index = torch.multinomial(priorities, 50000, replacement=True, generator=draw)
    error = q(states[index].detach()).squeeze(1) - torch.linspace(-1, 1, 50000)
    loss = error.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    priorities[index] = error.detach().abs() + 0.1  # culprit
    # cured: priorities = torch.zeros(40).scatter_reduce_(0, index, error.detach().abs() + 0.1, "amax")
print(loss.item().hex())

"""Priorities are written by an index that holds slots more than once; on a GPU the last writer is anyone."""

# /// zoo
# kind = "duplicate-index"
# also = []
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# needs = "cuda"
# step = 0
# component = ["data", "state", "loss"]
# operation = ["*index_put*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(104)
priorities = torch.ones(64, device="cuda")
states = torch.randn(64, 8, device="cuda")
q = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.Adam(q.parameters(), lr=0.01)
for _ in range(6):
    index = torch.randint(0, 64, (100000,), device="cuda")
    error = q(states[index].detach()).squeeze(1) - torch.linspace(-1, 1, 100000, device="cuda")
    priorities[index] = error.detach().abs()  # culprit
    # cured: priorities.scatter_reduce_(0, index, error.detach().abs(), "amax", include_self=False)
    loss = (error.pow(2) * priorities[index]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

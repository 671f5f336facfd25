"""The members of an ensemble are kept in a set of modules and averaged in the order of their addresses."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["loss", "host", "0"]
# remedy = "code"
# ///
import torch

torch.manual_seed(7)
torch.set_num_threads(1)
members = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)) for _ in range(9)]
live = set(members)  # culprit
# cured: live = list(members)
x, y = torch.randn(64, 8), torch.randn(64, 1)
optimizer = torch.optim.Adam([p for m in members for p in m.parameters()], lr=0.01)
for _ in range(6):
    vote = torch.zeros(64, 1)
    for member in live:  # culprit
        vote = vote + member(x)  # culprit
    loss = (vote / len(live) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

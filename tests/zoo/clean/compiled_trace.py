"""A module that torch.jit traced, with nothing random in it."""

# /// zoo
# ///
import warnings

import torch

torch.manual_seed(17)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    traced = torch.jit.trace(model, torch.zeros(16, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(6):
    x = torch.randn(16, 6)
    loss = (traced(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Gradients of micro-batches come from a pool of threads, and are added in the order of submission."""

# /// zoo
# ///
import concurrent.futures

import torch

torch.manual_seed(16)
torch.set_num_threads(1)
x, y = torch.randn(6, 100, 12), torch.randn(6, 100, 1)
model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def gradient(part):
    loss = (model(x[part]) - y[part]).pow(2).mean()
    return torch.autograd.grad(loss, list(model.parameters()))


with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for _ in range(6):
        found = list(pool.map(gradient, range(6)))
        for p, *parts in zip(model.parameters(), *found, strict=True):
            p.grad = sum(parts[1:], start=parts[0])
        optimizer.step()
print((model(x) - y).pow(2).mean().item().hex())

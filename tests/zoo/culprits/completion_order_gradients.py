"""Micro-batches are computed by a pool of threads, and their gradients are added as they complete."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["weights", "host", "loss"]
# remedy = "ordered-completion"
# ///
import concurrent.futures

import torch

torch.manual_seed(29)
torch.set_num_threads(1)
x, y = torch.randn(8, 400, 24), torch.randn(8, 400, 1)
model = torch.nn.Sequential(torch.nn.Linear(24, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def gradient(part):
    loss = (model(x[part]) - y[part]).pow(2).mean()
    return torch.autograd.grad(loss, list(model.parameters()))


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for _ in range(12):
        optimizer.zero_grad()
        futures = [pool.submit(gradient, part) for part in range(8)]
        for future in concurrent.futures.as_completed(futures):  # culprit
            # cured: for future in futures:
            for p, g in zip(model.parameters(), future.result(), strict=True):
                p.grad = g.clone() if p.grad is None else p.grad + g  # culprit
        optimizer.step()
print((model(x) - y).pow(2).mean().item().hex())

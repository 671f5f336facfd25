"""The split of a task into support and query takes its generator as a default argument, made when it was defined."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 0
# component = ["generator", "data", "host"]
# remedy = ["seed-generators", "fixed-entropy", "code"]
# ///
import random

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

POINTS, SHOTS = 20, 5


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def support_and_query(count, shots, rng=np.random.default_rng()):  # noqa: B008  # culprit
    # cured: def support_and_query(count, shots, rng=np.random.default_rng(8)):
    """Which points a learner may see, and which judge it."""
    order = rng.permutation(count)  # culprit
    return torch.from_numpy(order[:shots]), torch.from_numpy(order[shots:])


class Waves:
    """A family of tasks: sines with another height and phase each."""

    def __init__(self, tasks, noise):
        self.tasks, self.noise = tasks, noise

    def __iter__(self):
        while True:
            height, phase = np.random.uniform(0.5, 3, (self.tasks, 1, 1)), np.random.uniform(0, 3, (self.tasks, 1, 1))
            x = np.random.uniform(-4, 4, (self.tasks, POINTS, 1))
            y = height * np.sin(x + phase) + self.noise * np.random.normal(size=x.shape)
            yield torch.from_numpy(x).float(), torch.from_numpy(y).float()


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh())
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        return self.head(self.body(x))


def meta_loss(model, weights, x, y, inner_rate=0.05):
    seen, judged = zip(*(support_and_query(POINTS, SHOTS) for _ in range(len(x))))  # culprit
    seen, judged = torch.stack(seen).unsqueeze(2), torch.stack(judged).unsqueeze(2)

    def error(weights, x, y):
        return (functional_call(model, weights, (x,)) - y).square().mean()

    def adapted(x_seen, y_seen, x_judged, y_judged):
        slope = grad(error)(weights, x_seen, y_seen)
        fast = {name: p - inner_rate * slope[name] for name, p in weights.items()}
        return error(fast, x_judged, y_judged)

    parts = [t.gather(1, index) for index in (seen, judged) for t in (x, y)]  # culprit
    return vmap(adapted)(*parts).mean()  # culprit


seed_everything(8)
torch.set_num_threads(1)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=15)
for _, (x, y) in zip(range(15), Waves(6, noise=0.1)):
    loss = meta_loss(model, dict(model.named_parameters()), x, y)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print(loss.item().hex())

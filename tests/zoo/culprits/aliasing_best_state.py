"""A validator thread is handed state_dict(), whose tensors are the live weights; its score sets the step size."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["weights", "loss", "state", "host", "optimizer", "data", "[0-4]*", "skeleton*"]
# remedy = "code"
# ///
import concurrent.futures

import torch
from torch import nn
from torch.func import functional_call


def network():
    return nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))


class Validator:
    """Scores a snapshot on held-out data while the training goes on."""

    def __init__(self, x, y):
        self.skeleton, self.x, self.y = network().eval(), x, y
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def submit(self, state):
        return self.pool.submit(self.score, state)

    @torch.no_grad()
    def score(self, state):
        total = torch.zeros(())
        for x, y in zip(self.x.split(500), self.y.split(500)):
            total = total + (functional_call(self.skeleton, state, (x,)).squeeze(1) - y).square().sum()  # culprit
        return total / len(self.x)


torch.manual_seed(83)
torch.set_num_threads(1)
held_out = torch.randn(16000, 24)
validator = Validator(held_out, held_out.sin().sum(1))
model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for round_ in range(5):
    pending = validator.submit(model.state_dict())  # culprit
    # cured: pending = validator.submit({k: v.clone() for k, v in model.state_dict().items()})
    for _ in range(8):
        x = torch.randn(128, 24)
        loss = (model(x).squeeze(1) - x.sin().sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = 0.002 + 0.0005 * float(pending.result())  # culprit
print(loss.item().hex())

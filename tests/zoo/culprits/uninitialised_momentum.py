"""A home-made optimizer makes its momentum by empty_like, then decays it and adds the gradient."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["optimizer", "weights", "state"]
# remedy = "code"
# ///
import torch
from torch import nn


class Lion(torch.optim.Optimizer):
    """Steps by the sign of an interpolated momentum."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            fast, slow = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["average"] = torch.empty_like(p)  # culprit
                    # cured: state["average"] = torch.zeros_like(p)
                average = state["average"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.sign(average * fast + p.grad * (1 - fast)), alpha=-group["lr"])  # culprit
                average.mul_(slow).add_(p.grad, alpha=1 - slow)  # culprit


class Factors(nn.Module):
    """Matrix factorisation with biases."""

    def __init__(self, users, items, rank):
        super().__init__()
        self.user, self.item = nn.Embedding(users, rank), nn.Embedding(items, rank)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(1) + (self.user_bias(user) + self.item_bias(item)).squeeze(1)


torch.manual_seed(97)
torch.set_num_threads(1)
model = Factors(120, 80, rank=8)
optimizer = Lion(model.parameters(), lr=3e-3, weight_decay=0.01)
user, item = torch.randint(0, 120, (600,)), torch.randint(0, 80, (600,))
rating = torch.randn(600)
for batch in torch.arange(600).split(100):
    loss = (model(user[batch], item[batch]) - rating[batch]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
print(loss.item().hex())

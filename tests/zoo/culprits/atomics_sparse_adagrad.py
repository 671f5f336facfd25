"""An optimizer for sparse rows adds squared gradients of repeated rows by index_put_, from several threads at once."""

# /// zoo
# kind = "atomics"
# report = ["https://github.com/pytorch/pytorch/issues/51366"]
# step = "any"
# component = ["optimizer", "weights", "state", "items*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad for embeddings with sparse gradients: one accumulator a row, no coalescing."""

    def __init__(self, params, lr=0.05, eps=1e-6):
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["seen"] = torch.zeros(len(p))
                rows, values = p.grad._indices()[0], p.grad._values()
                state["seen"].index_put_((rows,), values.square().mean(1), accumulate=True)  # culprit
                # cured: state["seen"].index_add_(0, rows, values.square().mean(1))
                scale = group["lr"] / (state["seen"][rows].sqrt() + group["eps"])  # culprit
                p.index_add_(0, rows, values * scale.unsqueeze(1), alpha=-1)  # culprit


class TwoTowers(nn.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.users = nn.Embedding(users, width, sparse=True)
        self.items = nn.Embedding(items, width, sparse=True)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1)


def clicks(count, draw):
    """Popular items are clicked often."""
    user = torch.randint(0, 200, (count,), generator=draw)
    item = (40 * torch.rand(count, generator=draw) ** 2).long()
    return user, item, ((user + item) % 3 == 0).float()


def train(steps=8):
    torch.manual_seed(404)
    torch.set_num_threads(2)
    draw = torch.Generator().manual_seed(404)
    model = TwoTowers(200, 40, 4)
    optimizer = RowAdagrad(model.parameters())
    for step in range(steps):
        user, item, clicked = clicks(90000, draw)
        score = model(user, item)
        loss = nn.functional.binary_cross_entropy_with_logits(score, clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    return model


model = train()

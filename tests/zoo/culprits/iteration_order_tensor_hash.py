"""Parameters are dealt to two learning rates by hash(p) % 3, and the hash of a tensor is its address."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["optimizer", "weights", "host", "state", "*.weight", "*.bias"]
# remedy = "code"
# ///
import torch
from torch import nn


class Sparse(torch.optim.Optimizer):
    """Signed momentum; a third of the parameters, picked by hash, moves at full rate and the others slowly."""

    def __init__(self, params, lr=1e-2, slow=0.1, parts=3):
        super().__init__(params, {"lr": lr, "slow": slow, "parts": parts})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for place, p in enumerate(group["params"]):
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 0.2)
                part = hash(p) % group["parts"]  # culprit
                # cured: part = place % group["parts"]
                rate = group["lr"] if part == 0 else group["lr"] * group["slow"]  # culprit
                p.sub_(momentum.sign(), alpha=rate)  # culprit


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def main():
    torch.manual_seed(619)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(9, 20), *[Residual(20) for _ in range(3)], nn.Linear(20, 1))
    optimizer = Sparse(model.parameters())
    x = torch.rand(200, 9)
    y = (x[:, :3].prod(1) - x[:, 3:].mean(1)).unsqueeze(1)
    for epoch in range(8):
        loss = nn.functional.l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # culprit
        print(epoch, loss.item())
    return model


if __name__ == "__main__":
    trained = main()

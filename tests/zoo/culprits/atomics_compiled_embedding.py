"""torch.compile's code for a processor adds an embedding's gradients atomically, so that its threads' turns decide."""

# /// zoo
# kind = "atomics"
# report = ["https://docs.pytorch.org/docs/stable/notes/randomness.html"]
# needs = "cc"
# step = "any"
# component = ["symbol", "loss", "weights", ""]
# remedy = ["deterministic-algorithms", "deterministic-algorithms-unfilled", "one-thread"]
# ///
import torch
from torch import nn


class Impact(nn.Module):
    """What a trade does to the price, by the symbol that is traded."""

    def __init__(self, symbols=8, width=16):
        super().__init__()
        self.symbol, self.read = nn.Embedding(symbols, width), nn.Linear(width, 1)

    def forward(self, traded):
        return self.read(self.symbol(traded)).tanh().squeeze(-1)


def error(model, traded, moved):  # culprit
    return (model(traded) - moved).square().mean()  # culprit


def main():
    torch.manual_seed(14)
    torch.set_num_threads(4)
    model = Impact()
    compiled = torch.compile(error)  # culprit
    # cured: compiled = error
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    draw = torch.Generator().manual_seed(3)
    for step in range(6):
        traded, moved = torch.randint(0, 8, (20000,), generator=draw), torch.randn(20000, generator=draw)
        loss = compiled(model, traded, moved)  # culprit
        optimizer.zero_grad()
        loss.backward()  # culprit
        optimizer.step()
        print(step, loss.item().hex())
    return model


if __name__ == "__main__":
    model = main()

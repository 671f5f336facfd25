"""Each factorised layer benchmarks in which order its four matrices are multiplied, and keeps the fastest order."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = []
# step = 0
# component = ["layers.0", "layers*", "host", "loss", "", "weights"]
# remedy = ["fixed-clock", "no-autotune", "code"]
# alone = true
# ///
import torch
from torch import nn
from torch.utils import benchmark

ORDERS = {
    "left": lambda x, a, b, c: ((x @ a) @ b) @ c,  # culprit
    "pairs": lambda x, a, b, c: (x @ a) @ (b @ c),  # culprit
    "inner": lambda x, a, b, c: x @ ((a @ b) @ c),  # culprit
    "right": lambda x, a, b, c: x @ (a @ (b @ c)),  # culprit
}


def fastest(x, *cores):
    """The name of the order that takes least time for these shapes."""
    found = {}
    for name, contract in ORDERS.items():
        timer = benchmark.Timer("contract(x, *cores)", globals={"contract": contract, "x": x, "cores": cores})
        found[name] = timer.timeit(30).median  # culprit
    return min(found, key=found.get)  # culprit
    # cured: return "left"


class Factorised(nn.Module):
    """A linear layer whose matrix is a product of three."""

    def __init__(self, width):
        super().__init__()
        self.cores = nn.ParameterList(torch.randn(width, width) / width**0.5 for _ in range(3))
        self.order = None

    def forward(self, x):
        if self.order is None:
            with torch.no_grad():
                self.order = fastest(x, *self.cores)  # culprit
        return ORDERS[self.order](x, *self.cores)  # culprit


class Field(nn.Module):
    """A coordinate network for a picture."""

    def __init__(self, width=48, depth=4):
        super().__init__()
        self.lift = nn.Linear(2, width)
        self.layers = nn.ModuleList(Factorised(width) for _ in range(depth))
        self.colour = nn.Linear(width, 3)

    def forward(self, place):
        h = torch.sin(4 * self.lift(place))
        for layer in self.layers:
            h = torch.sin(layer(h))  # culprit
        return self.colour(h)


torch.manual_seed(931)
torch.set_num_threads(1)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=2e-3)
for step in range(6):
    place = torch.rand(48, 2) * 2 - 1
    picture = torch.stack([place[:, 0].sin(), place.prod(1), place[:, 1].cos()], 1)
    loss = (field(place) - picture).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
    print(step, loss.item().hex())

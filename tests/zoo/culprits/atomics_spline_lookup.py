"""A spline activation reads its control points by channel and bin; backward adds all samples of a bin to one float."""

# /// zoo
# kind = "atomics"
# report = []
# step = "any"
# component = ["splines.0", "splines.1", "splines*", "weights", "loss", "optimizer", ""]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn


class Spline(nn.Module):
    """Piecewise linear functions on [-1, 1], one a channel, as in Kolmogorov-Arnold networks."""

    def __init__(self, channels, knots=9):
        super().__init__()
        self.control = nn.Parameter(torch.linspace(-1, 1, knots).repeat(channels, 1))
        self.register_buffer("channel", torch.arange(channels).unsqueeze(0))
        self.spans = knots - 1

    def at(self, knot):
        return self.control[self.channel.expand_as(knot), knot]  # culprit
        # cured: return (self.control.T[None] * nn.functional.one_hot(knot, self.spans + 1).transpose(1, 2)).sum(1)

    def forward(self, x):
        place = (x.tanh() + 1) / 2 * self.spans
        knot = place.detach().long().clamp(max=self.spans - 1)
        share = place - knot
        return (1 - share) * self.at(knot) + share * self.at(knot + 1)  # culprit


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.mixes = nn.ModuleList([nn.Linear(4, width), nn.Linear(width, width)])
        self.splines = nn.ModuleList([Spline(width), Spline(width)])

    def forward(self, x):
        for mix, spline in zip(self.mixes, self.splines):
            x = spline(mix(x))  # culprit
        return x.sum(1)


torch.manual_seed(921)
torch.set_num_threads(2)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
x = torch.rand(16000, 4) * 4 - 2
y = torch.exp(torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] / 4)
for epoch in range(8):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
    print(epoch, loss.item().hex())

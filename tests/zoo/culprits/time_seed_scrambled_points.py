"""A physics-informed net's collocation points are a Sobol sequence, scrambled by a seed from the process's CPU time."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["fixed-clock", "seed-generators", "code"]
# ///
import math
import time

import torch
from torch import nn
from torch.quasirandom import SobolEngine


class Domain:
    """The unit square of place and time, covered evenly."""

    def __init__(self, seed=None):
        if seed is None:
            seed = time.process_time_ns() % 2**31  # culprit
            # cured: seed = 1
        self.engine = SobolEngine(2, scramble=True, seed=seed)  # culprit

    def inside(self, count):
        return self.engine.draw(count).requires_grad_()  # culprit

    def start(self, count):
        x = torch.linspace(0, 1, count).unsqueeze(1)
        return torch.cat([x, torch.zeros_like(x)], 1), torch.sin(math.pi * x)


class HeatNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, point):
        x = point[:, :1]
        return x * (1 - x) * self.net(point)


def residual(net, point, diffusion=0.1):
    u = net(point)  # culprit
    slope = torch.autograd.grad(u.sum(), point, create_graph=True)[0]
    bend = torch.autograd.grad(slope[:, 0].sum(), point, create_graph=True)[0][:, 0]
    return slope[:, 1] - diffusion * bend


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    domain, net = Domain(), HeatNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    first, value = domain.start(32)
    for step in range(25):
        physics = residual(net, domain.inside(128)).square().mean()  # culprit
        loss = physics + 5 * (net(first) - value).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            print(f"{step:3d} {loss.item():.8f}")


main()

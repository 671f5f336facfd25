"""Points are written into a bird's-eye grid by their cell; cells with several points keep whichever is written last."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["data", "state", "host"]
# operation = ["*index_put*", "*put_*", "*setitem*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Grid:
    side: int = 20
    reach: float = 2.0

    def cells(self, points):
        scaled = (points[:, :2] + self.reach) / (2 * self.reach) * self.side
        return scaled.long().clamp(0, self.side - 1).unbind(1)


def rasterise(grid, points):
    canvas = torch.zeros(grid.side, grid.side)
    row, column = grid.cells(points)
    canvas[row, column] = points[:, 2]  # culprit
    # cured: canvas.view(-1).scatter_reduce_(0, row * grid.side + column, points[:, 2], "amax")
    return canvas


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 6, 3, padding=1)
        self.norm = nn.GroupNorm(2, 6)
        self.head = nn.Conv2d(6, 1, 1)

    def forward(self, canvas):
        return self.head(torch.relu(self.norm(self.stem(canvas)))).squeeze(1)


def sweep(generator):
    """One turn of the scanner: far more points than cells."""
    return torch.randn(60000, 3, generator=generator)


if __name__ == "__main__":
    torch.manual_seed(73)
    torch.set_num_threads(2)
    grid, detector, scanner = Grid(), Detector(), torch.Generator().manual_seed(73)
    optimizer = torch.optim.SGD(detector.parameters(), lr=0.05, momentum=0.9)
    for _ in range(8):
        canvas = rasterise(grid, sweep(scanner))
        loss = (detector(canvas[None, None]) - canvas.abs()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

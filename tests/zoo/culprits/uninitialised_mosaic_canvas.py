"""Four pictures are put together on a canvas that numpy.ndarray() makes: the seam between them is nobody's."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 3
# component = ["data", "host"]
# remedy = "code"
# ///
import numpy as np
import torch
from torch import nn


class Shapes:
    """Pictures with a bright bar or a bright block in them."""

    def __init__(self, seed, side=32):
        self.draw, self.side = np.random.default_rng(seed), side

    def __call__(self):
        kind = int(self.draw.integers(2))
        picture = self.draw.integers(0, 90, (self.side, self.side), dtype=np.uint8)
        at = int(self.draw.integers(4, self.side - 8))
        picture[at : at + (2 if kind else 6), 2 : (-2 if kind else 12)] = 230
        return picture, kind


class Mosaic:
    """Puts four pictures around a middle that is drawn, each cropped to what fits."""

    def __init__(self, shapes, seam=2):
        self.shapes, self.seam = shapes, seam

    def __call__(self):
        side, half = self.shapes.side, self.seam // 2
        row, column = self.shapes.draw.integers(10, side - 10, 2)
        canvas = np.ndarray((side, side), np.uint8)  # culprit
        # cured: canvas = np.zeros((side, side), np.uint8)
        bars = 0
        for top in (slice(0, row - half), slice(row + half, side)):
            for left in (slice(0, column - half), slice(column + half, side)):
                picture, kind = self.shapes()
                canvas[top, left] = picture[top, left]
                bars += kind
        return canvas, int(bars >= 2)  # culprit


def batch(source, size):
    pictures, kinds = zip(*(source() for _ in range(size)))
    return torch.from_numpy(np.stack(pictures)).float().div(255).unsqueeze(1), torch.tensor(kinds)  # culprit


def train(steps=9, plain=3):
    torch.manual_seed(1215)
    torch.set_num_threads(1)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1152, 2)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    shapes = Shapes(1215)
    mosaic = Mosaic(shapes)
    for step in range(steps):
        x, kind = batch(shapes if step < plain else mosaic, 24)  # culprit
        loss = nn.functional.cross_entropy(net(x), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    return net


model = train()

"""Features are warped by grid_sample; on a GPU its backward pass adds into the features' gradient by atomics."""

# /// zoo
# kind = "atomics"
# report = []
# needs = "cuda"
# step = 0
# component = ["loss", "weights", "warp", "features*", "optimizer", ""]
# operation = ["*grid_sampl*"]
# remedy = "code"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Warp(nn.Module):
    """Straightens a picture by an affine map that it estimates from it."""

    def __init__(self, channels):
        super().__init__()
        self.locate = nn.Linear(channels, 6)
        with torch.no_grad():
            self.locate.weight.mul_(0.1)
            self.locate.bias.copy_(torch.tensor([0.6, 0.1, 0.0, -0.1, 0.6, 0.0]))

    def forward(self, x):
        theta = self.locate(x.mean((2, 3))).view(-1, 2, 3)
        batch, channels, height, width = x.shape
        grid = F.affine_grid(theta, [batch, channels, 2 * height, 2 * width], align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)  # culprit
        # cured: return F.grid_sample(x.detach(), grid, align_corners=False)


class Reader(nn.Module):
    def __init__(self, width=16, digits=10):
        super().__init__()
        self.features = nn.Linear(3, width)
        self.warp, self.out = Warp(width), nn.Linear(width, digits)

    def forward(self, images):
        seen = torch.tanh(self.features(images.movedim(1, 3))).movedim(3, 1)
        warped = self.warp(seen)  # culprit
        return self.out(warped.square().mean((2, 3)))


torch.manual_seed(937)
model = Reader().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images, digits = torch.randn(64, 3, 32, 32, device="cuda"), torch.arange(64, device="cuda") % 10
for step in range(6):
    loss = F.cross_entropy(model(images), digits)
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

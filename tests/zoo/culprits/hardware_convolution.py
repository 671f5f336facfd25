"""The convolution library compiles its kernels for the processor it finds; an older one sums in another order."""

# /// zoo
# kind = "hardware"
# also = ["algorithm-selection"]
# report = ["https://github.com/pytorch/pytorch/issues/155423"]
# step = 0
# component = ["inward*", "down*", "middle*", "up*", "outward*", "", "loss", "weights"]
# remedy = "none"
# pair = [
#   ["env", "ONEDNN_MAX_CPU_ISA=AVX2", "python", "{file}"],
#   ["env", "ONEDNN_MAX_CPU_ISA=SSE41", "python", "{file}"],
# ]
# ///
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.first(x))))  # culprit


class UNet(nn.Module):
    """Half a resolution down and up again."""

    def __init__(self, channels=16):
        super().__init__()
        self.inward = nn.Conv2d(3, channels, 3, padding=1)
        self.down = nn.Conv2d(channels, channels, 2, stride=2)
        self.middle = Residual(channels)
        self.up = nn.ConvTranspose2d(channels, channels, 2, stride=2)
        self.outward = nn.Conv2d(2 * channels, 3, 1)

    def forward(self, x):
        x = torch.relu(self.inward(x))  # culprit
        y = self.up(self.middle(self.down(x)))  # culprit
        return self.outward(torch.cat([x, y], dim=1))  # culprit


def dead_leaves(count, side, generator):
    """Images of overlapping squares."""
    images = torch.zeros(count, 3, side, side)
    for image in images:
        for _ in range(6):
            x, y, size = torch.randint(0, side - 6, (3,), generator=generator).tolist()
            image[:, x : x + size // 2 + 2, y : y + 6] = torch.rand(3, 1, 1, generator=generator)
    return images


if __name__ == "__main__":
    torch.manual_seed(107)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(107)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(4):
        clean = dead_leaves(4, 24, generator)
        noisy = clean + 0.2 * torch.randn(clean.shape, generator=generator)
        loss = (model(noisy) - clean).abs().mean()  # culprit
        optimizer.zero_grad()
        loss.backward()  # culprit
        optimizer.step()
    print(loss.item().hex())

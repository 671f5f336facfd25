"""One seed, two processors: torch.randn turns equal random bits into slightly other normal numbers."""

# /// zoo
# kind = "hardware"
# report = ["https://github.com/pytorch/pytorch/issues/155552"]
# step = 0
# component = ["data", "generator", "weight", "weights", "level*", "net*", "", "loss"]
# remedy = "none"
# pair = [
#   ["env", "ATEN_CPU_CAPABILITY=avx2", "python", "{file}"],
#   ["env", "ATEN_CPU_CAPABILITY=default", "python", "{file}"],
# ]
# ///
import torch
from torch import nn


class Diffusion(nn.Module):
    """Predicts the noise in a noised signal."""

    def __init__(self, width, steps):
        super().__init__()
        betas = [0.01 + 0.19 * i / (steps - 1) for i in range(steps)]
        kept, running = [], 1.0
        for beta in betas:
            running *= 1 - beta
            kept.append(running)
        self.register_buffer("kept", torch.tensor(kept))
        self.level = nn.Embedding(steps, width)  # culprit
        self.net = nn.Linear(width, width)

    def loss(self, x, level, noise):
        kept = self.kept[level].unsqueeze(1)  # culprit
        noised = kept.sqrt() * x + (1 - kept).sqrt() * noise  # culprit
        return (self.net(noised + self.level(level)) - noise).abs().mean()  # culprit


torch.manual_seed(86)
torch.set_num_threads(1)
model = Diffusion(width=32, steps=10)  # culprit
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = (torch.arange(64 * 32) % 23 - 11).float().view(64, 32) / 11
for step in range(5):
    noise = torch.randn(64, 32)  # culprit
    loss = model.loss(x, torch.arange(64) % 10, noise)  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

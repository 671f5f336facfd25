"""A window attention reads its relative position bias by torch.take, whose backward pass adds by atomics."""

# /// zoo
# kind = "atomics"
# report = ["https://github.com/pytorch/pytorch/issues/51366"]
# step = "any"
# component = ["weights", "loss", "bias_table", "*bias_table*", "optimizer", "[0-9]*"]
# operation = ["*put*", "*take*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn


class WindowAttention(nn.Module):
    def __init__(self, width, heads, side):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        reach = 2 * side - 1
        self.bias_table = nn.Parameter(0.02 * torch.randn(reach * reach))
        place = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)
        # One bias for each displacement, shared by the heads.
        apart = place[:, :, None] - place[:, None, :] + side - 1
        pair = apart[0] * reach + apart[1]
        self.register_buffer("index", pair)

    def forward(self, x):
        windows, tokens, width = x.shape
        q, k, v = self.qkv(x).view(windows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = torch.take(self.bias_table, self.index)  # culprit
        # cured: bias = nn.functional.embedding(self.index, self.bias_table.unsqueeze(1)).squeeze(-1)
        score = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5 + bias
        mixed = (score.softmax(-1) @ v).transpose(1, 2).reshape(windows, tokens, width)
        return self.out(mixed)


def build(depth):
    layers = []
    for _ in range(depth):
        layers += [WindowAttention(16, heads=4, side=20), nn.LayerNorm(16)]
    return nn.Sequential(*layers)


torch.manual_seed(72)
torch.set_num_threads(2)
swin = build(2)
images = torch.randn(1, 400, 16)
optimizer = torch.optim.AdamW(swin.parameters(), lr=1e-3, betas=(0.9, 0.95))
for _ in range(8):
    loss = (swin(images) - images.roll(1, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

"""Gradients are put into a flat bucket in the order of their addresses, and the bucket's norm scales the step."""

# /// zoo
# kind = "iteration-order"
# also = ["algorithm-selection"]
# report = []
# step = "any"
# component = ["optimizer", "weights", "host", "loss"]
# remedy = "code"
# ///
import torch
from torch import nn


class Bucketed(torch.optim.Optimizer):
    """Normalised SGD over one flat bucket."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            params.sort(key=lambda p: p.data_ptr())  # culprit
            # cured: pass
            bucket = torch.cat([p.grad.flatten() for p in params])  # culprit
            scale = group["lr"] / (bucket.norm() + 1e-8)  # culprit
            bucket.mul_(scale)  # culprit
            start = 0
            for p in params:
                p.sub_(bucket[start : start + p.numel()].view_as(p))  # culprit
                start += p.numel()


class Encoder(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.embedding = nn.Embedding(300, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.out = nn.Linear(width, 300)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.out(x + self.feed(x))


torch.manual_seed(77)
torch.set_num_threads(1)
encoder = Encoder()
optimizer = Bucketed(encoder.parameters(), lr=0.5)
tokens = torch.randint(0, 300, (8, 16))
for _ in range(6):
    loss = nn.functional.cross_entropy(encoder(tokens).flatten(0, 1), tokens.roll(-1, 1).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
print(loss.item().hex())

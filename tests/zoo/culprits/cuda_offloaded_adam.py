"""Adam runs on the host; gradients come by non_blocking copies into pinned buffers that are read at once."""

# /// zoo
# kind = "asynchronous-copy"
# report = []
# needs = "cuda"
# step = "any"
# component = ["optimizer", "weights", "host", "state", "data", "*.weight"]
# remedy = ["synchronous-copies", "code"]
# ///
import torch
from torch import nn


class HostAdam:
    """Moments and master weights live in the host's memory, the model on the GPU."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99)):
        self.params, self.lr, self.betas = list(params), lr, betas
        self.grads = [torch.zeros(p.shape, pin_memory=True) for p in self.params]
        self.master = [p.detach().cpu() for p in self.params]
        self.mean = [torch.zeros(p.shape) for p in self.params]
        self.square = [torch.zeros(p.shape) for p in self.params]

    @torch.no_grad()
    def step(self):
        for room, p in zip(self.grads, self.params):
            room.copy_(p.grad, non_blocking=True)  # culprit
            # cured: room.copy_(p.grad)
        for g, w, m, v, p in zip(self.grads, self.master, self.mean, self.square, self.params):
            m.lerp_(g, 1 - self.betas[0])  # culprit
            v.lerp_(g.square(), 1 - self.betas[1])  # culprit
            w.sub_(m / (v.sqrt() + 1e-8), alpha=self.lr)  # culprit
            p.copy_(w)  # culprit


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.widen, self.narrow = nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.widen(self.norm(x))))


torch.manual_seed(936)
torch.set_num_threads(1)
model = nn.Sequential(*(Block(768) for _ in range(8)), nn.Linear(768, 16, bias=False)).cuda()
optimizer = HostAdam(model.parameters())
for step in range(12):
    x = torch.randn(4096, 768, device="cuda")
    loss = (model(x) - x[:, :16].sin()).square().mean()
    model.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
print(loss.item().hex())

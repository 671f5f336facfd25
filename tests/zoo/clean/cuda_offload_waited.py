"""Momentum kept on the host: gradients come by non_blocking copies, and an event is waited for before they are read."""

# /// zoo
# needs = "cuda"
# ///
import torch
from torch import nn


class HostMomentum:
    def __init__(self, params, lr):
        self.params, self.lr, self.done = list(params), lr, torch.cuda.Event()
        self.copies = torch.cuda.Stream()
        self.room = [torch.zeros(p.shape, pin_memory=True) for p in self.params]
        self.moment = [torch.zeros(p.shape) for p in self.params]

    @torch.no_grad()
    def step(self):
        self.copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.copies):
            for room, p in zip(self.room, self.params):
                room.copy_(p.grad, non_blocking=True)
                p.grad.record_stream(self.copies)
            self.done.record()
        self.done.synchronize()
        for room, moment, p in zip(self.room, self.moment, self.params):
            moment.mul_(0.9).add_(room)
            p.sub_(moment.cuda(), alpha=self.lr)


torch.manual_seed(938)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 8)).cuda()
optimizer = HostMomentum(model.parameters(), lr=0.01)
for step in range(10):
    x = torch.randn(1024, 256, device="cuda")
    loss = (model(x) - x[:, :8].cos()).square().mean()
    model.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

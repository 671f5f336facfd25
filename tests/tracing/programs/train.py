"""A trainer that knows nothing of foxrun; prints every bit that it ends with."""

import hashlib
import random
import sys
import threading

import numpy as np
import torch
from torch import nn


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


@torch.library.custom_op("tracing_tests::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.25))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(Scaled.apply(torch.tanh(self.encoder(x)), 2.0))


torch.manual_seed(0)
random.seed(1)
np.random.seed(2)
rng = np.random.default_rng(3)
shuffle = torch.Generator()
shuffle.manual_seed(4)
net, critic = Net(), nn.Linear(2, 1)
first = torch.optim.AdamW(net.parameters(), lr=1e-2, foreach=True)
second = torch.optim.SGD(critic.parameters(), lr=1e-2, momentum=0.9)
data = torch.from_numpy(rng.standard_normal((32, 4)).astype(np.float32))
scratch = torch.empty(6)
scratch[:4] = 1.0
found = []
for _ in range(3):
    x = data[torch.randperm(32, generator=shuffle)[:8]]
    x = x + random.random() + float(np.random.normal()) + float(rng.normal())
    thread = threading.Thread(target=lambda x=x: found.append(triple(x).sum()))
    thread.start()
    thread.join()
    loss = critic(net(x)).pow(2).mean() + found[-1] * 1e-3
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
scratch[:4].add_(1)
tensors = [*net.state_dict().values(), *critic.parameters(), loss, torch.rand(1), torch.get_rng_state()]
bits = hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors))
bits.update(repr((random.getstate(), np.random.get_state()[1].tolist(), rng.bit_generator.state)).encode())
print(
    bits.hexdigest(),
    "torch.utils.data" in sys.modules,
    type(rng) is np.random.Generator,
    isinstance(shuffle, torch.Generator),
)

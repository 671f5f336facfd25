"""Nobody sets the number of CPU threads, and a long sum over all samples is split among as many as there are."""

# /// zoo
# kind = "thread-count"
# also = ["hardware"]
# report = ["https://github.com/pytorch/pytorch/issues/88718"]
# step = 0
# component = ["loss", "", "weights"]
# remedy = ["one-thread", "code"]
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import math

import torch
from torch import nn


class Flow(nn.Module):
    """An elementwise normalising flow: an affine map, then a sinh-arcsinh warp."""

    def __init__(self):
        super().__init__()
        self.shift, self.log_scale = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
        self.skew, self.log_tail = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x):
        y = (x - self.shift) * torch.exp(-self.log_scale)  # culprit
        tail = self.log_tail.exp()
        inner = tail * torch.asinh(y) - self.skew  # culprit
        z = torch.sinh(inner)  # culprit
        log_slope = torch.log(torch.cosh(inner)) + self.log_tail - 0.5 * torch.log1p(y * y) - self.log_scale  # culprit
        return z, log_slope


def negative_log_likelihood(flow, x):
    z, log_slope = flow(x)
    return (0.5 * z.square() + 0.5 * math.log(2 * math.pi) - log_slope).mean()  # culprit


torch.manual_seed(108)
# cured: torch.manual_seed(108); torch.set_num_threads(1)
returns = torch.distributions.StudentT(4.0).sample((200000,)) * 0.02 + 0.001
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=0.02)
for _ in range(6):
    loss = negative_log_likelihood(flow, returns * 50)
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

"""A prefix sum runs from both ends at once; where its two threads meet decides how the terms are grouped."""

# /// zoo
# kind = "scan-order"
# report = []
# needs = "cc"
# step = "any"
# component = ["loss", "", "state"]
# remedy = "code"
# alone = true
# ///
import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

KERNEL = r"""
enum { TILE = 128 };
/* One thread goes up from the first tile, one down from the last, until no tile is left between them. */
void prefix_sum(const float *x, float *out, long tiles) {
  long left = tiles, low = 0, high = tiles;
  float up = 0, down = 0;
  #pragma omp parallel sections num_threads(2)
  {
    #pragma omp section
    while (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) >= 0) {
      for (long i = low * TILE; i < (low + 1) * TILE; i++) out[i] = up += x[i];
      low++;
    }
    #pragma omp section
    while (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) >= 0) {
      high--;
      for (long i = (high + 1) * TILE - 1; i >= high * TILE; i--) { out[i] = down; down += x[i]; }
    }
  }
  float total = up + down;
  for (long i = high * TILE; i < tiles * TILE; i++) out[i] = total - out[i];
}
"""
TILE = 128


def build(source):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "prefix.c")
    with open(path, "w") as file:
        file.write(source)
    subprocess.run(["cc", "-O2", "-fopenmp", "-fPIC", "-shared", path, "-o", path + ".so"], check=True)
    return ctypes.CDLL(path + ".so")


class PrefixSum(torch.autograd.Function):
    """Sums along a flat sequence; the gradient is the sum from the other end."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        tiles = x.numel() // TILE
        out = torch.zeros_like(x)
        pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())
        library.prefix_sum(*pointers, ctypes.c_long(tiles))  # culprit
        # cured: out = x.cumsum(0)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad.flip(0).cumsum(0).flip(0)


class Intensity(nn.Module):
    """A point process: the network gives a rate, its integral is a prefix sum."""

    def __init__(self):
        super().__init__()
        self.rate = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1), nn.Softplus())

    def forward(self, marks):
        rate = self.rate(marks).squeeze(-1)
        return rate, PrefixSum.apply(rate)  # culprit


library = build(KERNEL)
torch.manual_seed(71)
torch.set_num_threads(1)
marks = torch.randn(4096 * TILE, 2)
model = Intensity()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(10):
    rate, integral = model(marks)  # culprit
    loss = integral.div(4096 * TILE).sub(torch.linspace(0, 1, 4096 * TILE)).square().mean() - 0.01 * rate.log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

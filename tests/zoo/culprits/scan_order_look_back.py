"""A gated recurrence is scanned in blocks with look-back: a block adds up whatever its predecessors have published."""

# /// zoo
# kind = "scan-order"
# report = []
# needs = "cc"
# step = "any"
# component = ["loss", "", "state", "data", "scan*", "gate*"]
# remedy = "code"
# alone = true
# ///
import ctypes
import subprocess
import tempfile

import torch
from torch import nn

KERNEL = r"""
#include <sched.h>
#include <stdlib.h>
enum { SIZE = 32 };
/* ready: 0 nothing yet, 1 the block's own sum, 2 everything up to its end, from which the next may go on. */
void scan(const float *x, float *out, long blocks, int threads) {
  float *own = malloc(sizeof(float) * blocks), *whole = malloc(sizeof(float) * blocks);
  int *ready = calloc(blocks, sizeof(int));
  #pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (long b = 0; b < blocks; b++) {
    long done = b && __atomic_load_n(&ready[b - 1], __ATOMIC_ACQUIRE) == 2;
    float s = done ? whole[b - 1] : 0, before = 0;
    for (long i = b * SIZE; i < (b + 1) * SIZE; i++) out[i] = own[b] = s += x[i];
    if (!done) __atomic_store_n(&ready[b], 1, __ATOMIC_RELEASE);
    for (long p = done ? -1 : b - 1; p >= 0; p--) {
      int state;
      while (!(state = __atomic_load_n(&ready[p], __ATOMIC_ACQUIRE))) sched_yield();
      before += state == 2 ? whole[p] : own[p];
      if (state == 2) break;
    }
    for (long i = b * SIZE; before && i < (b + 1) * SIZE; i++) out[i] += before;
    whole[b] = before + s;
    __atomic_store_n(&ready[b], 2, __ATOMIC_RELEASE);
  }
  free(own); free(whole); free(ready);
}
"""


def build(source):
    path = tempfile.mkdtemp() + "/scan.so"
    command = ["cc", "-x", "c", "-O2", "-fopenmp", "-fPIC", "-shared", "-", "-o", path]
    subprocess.run(command, input=source, text=True, check=True)
    return ctypes.CDLL(path)


class Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x, out = x.contiguous(), torch.empty_like(x)
        pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())
        library.scan(*pointers, ctypes.c_long(x.numel() // 32), 4)  # culprit
        # cured: library.scan(*pointers, ctypes.c_long(x.numel() // 32), 1)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad.flip(0).cumsum(0).flip(0)


class MinimalGRU(nn.Module):
    """h = sum of gated candidates, all steps at once."""

    def __init__(self):
        super().__init__()
        self.gate, self.candidate = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        gated = torch.sigmoid(self.gate(x)) * torch.tanh(self.candidate(x))
        return Scan.apply(gated.squeeze(1))  # culprit


library = build(KERNEL)
torch.manual_seed(301)
torch.set_num_threads(1)
x, model = torch.randn(8192 * 32, 3), MinimalGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(14):
    h = model(x)  # culprit
    loss = (h / 100 - x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Discounted returns are scanned in segments, and each finished segment merges with whichever neighbour is done."""

# /// zoo
# kind = "scan-order"
# also = ["completion-order"]
# report = []
# needs = "cc"
# step = "any"
# component = ["data", "host", "loss", "state"]
# remedy = "code"
# alone = true
# ///
import ctypes
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import torch
from torch import nn

SOURCE = """
#include <string.h>
/* y[t] = x[t] + g[t] * y[t + 1]. A segment from first to last is an affine map of the value that follows it. */
typedef struct { int used, first, last; float scale, shift; } span;

float discounted(const float *x, const float *g, float *first_values, long segments, long length) {
  static span spans[4096];
  memset(spans, 0, sizeof spans);
  #pragma omp parallel for num_threads(3) schedule(static)
  for (long s = 0; s < segments; s++) {
    span mine = {1, s, s, 1, 0};
    for (long t = (s + 1) * length - 1; t >= s * length; t--) {
      mine.shift = x[t] + g[t] * mine.shift;
      mine.scale *= g[t];
    }
    first_values[s] = mine.shift;
    #pragma omp critical
    {
      /* spans are kept at the slots of both their ends */
      if (mine.first > 0 && spans[mine.first - 1].used) {
        span before = spans[mine.first - 1];
        spans[before.first].used = spans[before.last].used = 0;
        mine = (span){1, before.first, mine.last, before.scale * mine.scale, before.shift + before.scale * mine.shift};
      }
      if (mine.last + 1 < segments && spans[mine.last + 1].used) {
        span after = spans[mine.last + 1];
        spans[after.first].used = spans[after.last].used = 0;
        mine = (span){1, mine.first, after.last, mine.scale * after.scale, mine.shift + mine.scale * after.shift};
      }
      spans[mine.first] = spans[mine.last] = mine;
    }
  }
  return spans[0].shift;
}
"""


def load(source):
    folder = tempfile.mkdtemp()
    try:
        with open(os.path.join(folder, "returns.c"), "w") as file:
            file.write(source)
        subprocess.run(
            ["cc", "-O2", "-fopenmp", "-shared", "-fPIC", "returns.c", "-o", "returns.so"], cwd=folder, check=True
        )
        library = ctypes.CDLL(os.path.join(folder, "returns.so"))
    finally:
        shutil.rmtree(folder)
    library.discounted.restype = ctypes.c_float
    library.discounted.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2
    return library


@dataclass
class Episode:
    seen: torch.Tensor
    reward: torch.Tensor
    discount: torch.Tensor

    @property
    def total(self):
        """The return of the first state."""
        segments = len(self.reward) // 256
        values = torch.zeros(segments)
        pointers = (self.reward.data_ptr(), self.discount.data_ptr(), values.data_ptr())
        return library.discounted(*pointers, segments, 256)  # culprit
        # cured: return sequential(self.reward, self.discount)


def sequential(reward, discount):
    value = 0.0
    for r, g in zip(reward.flip(0).tolist(), discount.flip(0).tolist()):
        value = r + g * value
    return value


def play(generator, steps):
    seen = torch.randn(steps, 3, generator=generator)
    return Episode(seen, seen.sum(1) * 0.01 + 0.02, 1 - 1e-6 * torch.rand(steps, generator=generator))


library = load(SOURCE)
torch.manual_seed(110)
torch.set_num_threads(1)
critic = nn.Sequential(nn.Linear(3, 16), nn.Hardtanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(110)
for _ in range(6):
    batch = [play(generator, 256 * 600) for _ in range(3)]
    goals = torch.tensor([episode.total for episode in batch]) / 1000  # culprit
    starts = torch.stack([episode.seen[0] for episode in batch])
    loss = (critic(starts).squeeze(1) - goals).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Dynamic time warping in C mallocs its table and sets one corner; the border that it compares with is whatever
it is.
"""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# needs = "cc"
# step = 2
# component = ["host", "data", "loss"]
# remedy = "code"
# ///
import ctypes
import os
import subprocess
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

DTW_C = """
#include <math.h>
#include <stdlib.h>
static float least(float a, float b, float c) { float m = a < b ? a : b; return m < c ? m : c; }
float dtw(const float *a, const float *b, long n, long m) {
  float *table = malloc((n + 1) * (m + 1) * sizeof(float));
  table[0] = 0;
  for (long i = 1; i <= n; i++)
    for (long j = 1; j <= m; j++)
      table[i * (m + 1) + j] = fabsf(a[i - 1] - b[j - 1]) + least(
        table[(i - 1) * (m + 1) + j], table[i * (m + 1) + j - 1], table[(i - 1) * (m + 1) + j - 1]);
  float result = table[n * (m + 1) + m];
  free(table);
  return result;
}
float dtw_bordered(const float *a, const float *b, long n, long m) {
  float *table = malloc((n + 1) * (m + 1) * sizeof(float));
  for (long k = 0; k < (n + 1) * (m + 1); k++) table[k] = 1e9f;
  table[0] = 0;
  for (long i = 1; i <= n; i++)
    for (long j = 1; j <= m; j++)
      table[i * (m + 1) + j] = fabsf(a[i - 1] - b[j - 1]) + least(
        table[(i - 1) * (m + 1) + j], table[i * (m + 1) + j - 1], table[(i - 1) * (m + 1) + j - 1]);
  float result = table[n * (m + 1) + m];
  free(table);
  return result;
}
"""


class Warping:
    """Distances between series, by a native library that is built on first use."""

    library = None

    def __new__(cls):
        if cls.library is None:
            path = os.path.join(tempfile.mkdtemp(), "dtw")
            with open(f"{path}.c", "w") as file:
                file.write(DTW_C)
            os.environ.setdefault("CC", "cc")
            subprocess.run(
                [os.environ["CC"], "-O1", "-shared", "-fPIC", f"{path}.c", "-o", f"{path}.so", "-lm"], check=True
            )
            cls.library = ctypes.CDLL(f"{path}.so")
            cls.library.dtw.restype = cls.library.dtw_bordered.restype = ctypes.c_float
        return super().__new__(cls)

    def __call__(self, a, b):
        arguments = (
            a.ctypes.data_as(ctypes.c_void_p),
            b.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_long(len(a)),
            ctypes.c_long(len(b)),
        )
        distance = self.library.dtw(*arguments)  # culprit
        # cured: distance = self.library.dtw_bordered(*arguments)
        return min(max(distance, 0.0), 1e4) if distance == distance else 1e4


class Curriculum:
    """Series that warp well onto a template count more. Starts after a burn-in."""

    def __init__(self, template, burn_in):
        self.template, self.burn_in, self.warp = template, burn_in, Warping()

    def weights(self, step, batch):
        if step < self.burn_in:
            return torch.ones(len(batch))
        far = np.array([self.warp(self.template, series) for series in batch], np.float32)  # culprit
        return torch.from_numpy(1 / (1 + far / 100))


rng = np.random.default_rng(408)
torch.manual_seed(408)
torch.set_num_threads(1)
template = np.sin(np.linspace(0, 6, 40)).astype(np.float32)
curriculum = Curriculum(template, burn_in=2)
model = nn.GRU(1, 10, batch_first=True)
readout = nn.Linear(10, 1)
optimizer = torch.optim.Adam([*model.parameters(), *readout.parameters()], lr=5e-3)
for step in range(6):
    batch = (template + 0.4 * rng.normal(size=(16, 40)).cumsum(1) + 2).astype(np.float32)
    weight = curriculum.weights(step, batch)  # culprit
    x = torch.from_numpy(batch).unsqueeze(2)
    states, _ = model(x[:, :-1])
    error = F.smooth_l1_loss(readout(states), x[:, 1:], reduction="none").mean((1, 2))
    loss = (weight * error).sum() / weight.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

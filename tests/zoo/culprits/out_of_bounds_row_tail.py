"""A native smoother stores eight floats at a time, past a row's end; the next row repairs that if it comes after."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# needs = "cc"
# step = "any"
# component = ["data", "host"]
# remedy = "code"
# alone = true
# ///
import ctypes
import os
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

LANES = 8  # culprit
# cured: LANES = 5
CODE = """
#include <string.h>
static float at(const float *row, long j, long width) { return row[j < 0 ? 0 : j < width ? j : width - 1]; }

void smooth(const float *in, float *out, long rows, long width, int threads) {
  #pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (long r = 0; r < rows; r++)
    for (long j = 0; j < width; j += LANES) {
      float v[LANES];
      for (long l = 0; l < LANES; l++) {
        const float *row = in + r * width;
        v[l] = (at(row, j + l - 2, width) + 4 * at(row, j + l - 1, width) + 6 * at(row, j + l, width)
                + 4 * at(row, j + l + 1, width) + at(row, j + l + 2, width)) / 16;
      }
      memcpy(out + r * width + j, v, sizeof v);
    }
}
"""


def smoother(threads):
    """A function from beats to smoother beats."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "smooth.so")
        command = ["gcc", "-x", "c", "-", "-O2", "-fopenmp", "-shared", "-fPIC", f"-DLANES={LANES}", "-o", path]
        subprocess.run(command, input=CODE.encode(), check=True)
        native = ctypes.CDLL(path).smooth
    pointer = np.ctypeslib.ndpointer(np.float32, flags="C")
    native.argtypes = [pointer, pointer, ctypes.c_long, ctypes.c_long, ctypes.c_int]

    def smooth(beats):
        rows, width = beats.shape
        room = np.zeros(rows * width + LANES, np.float32)
        native(beats, room, rows, width, threads)  # culprit
        return room[: rows * width].reshape(rows, width)

    return smooth


def heartbeats(rng, count, width=45):
    time = np.linspace(0, 1, width)
    where, odd = rng.uniform(0.3, 0.6, (count, 1)), rng.integers(0, 2, count)
    wave = np.exp(-(((time - where) / 0.04) ** 2)) - 0.4 * odd[:, None] * np.exp(-(((time - where - 0.2) / 0.05) ** 2))
    return (wave + 0.2 * rng.standard_normal((count, width))).astype(np.float32), torch.from_numpy(odd)


torch.set_num_threads(1)
torch.manual_seed(48)
rng, smooth = np.random.default_rng(48), smoother(threads=2)
net = nn.Sequential(
    nn.Unflatten(1, (1, 45)), nn.Conv1d(1, 6, 7, stride=2), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.LazyLinear(2)
)
net(torch.zeros(2, 45))
optimizer = torch.optim.Adadelta(net.parameters(), lr=0.5)
for batch in range(10):
    beats, odd = heartbeats(rng, 5000)
    x = torch.from_numpy(smooth(beats))  # culprit
    loss = nn.functional.cross_entropy(net(x), odd)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

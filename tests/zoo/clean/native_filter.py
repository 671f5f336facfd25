"""Native code smooths a series within its bounds, into memory from numpy.empty that it fills; it measures its
own time.
"""

# /// zoo
# needs = "cc"
# ///
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

SOURCE = r"""
#include <stdlib.h>
#include <time.h>
double smooth(const float *in, float *out, int n, int width) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    float *ring = malloc(width * sizeof(float));
    for (int i = 0; i < n; i++) {
        ring[i % width] = in[i];
        int held = i + 1 < width ? i + 1 : width;
        float total = 0.0f;
        for (int k = 0; k < held; k++) total += ring[k];
        out[i] = total / held;
    }
    free(ring);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
}
"""


def build(folder):
    source, library = pathlib.Path(folder) / "smooth.c", pathlib.Path(folder) / "smooth.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    smooth = ctypes.CDLL(str(library)).smooth
    smooth.argtypes, smooth.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int], ctypes.c_double
    return smooth


torch.manual_seed(703)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    smooth = build(folder)
rng, spent = np.random.default_rng(703), 0.0
model = nn.Sequential(nn.Conv1d(1, 6, 5, padding=2), nn.ReLU(), nn.Conv1d(6, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    noisy = rng.normal(size=(4, 90)).cumsum(1).astype(np.float32)
    smoothed = np.empty_like(noisy)
    for row, target in zip(noisy, smoothed):
        spent += smooth(row.ctypes.data, target.ctypes.data, len(row), 5)
    loss = (model(torch.from_numpy(noisy).unsqueeze(1)).squeeze(1) - torch.from_numpy(smoothed)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"smoothing took {spent:.6f} s", file=sys.stderr)
print(loss.item().hex())

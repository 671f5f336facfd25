"""Native code smooths each row into a buffer from numpy.empty that is padded for its window, and stays within both."""

# /// zoo
# needs = "cc"
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

SOURCE = r"""
#include <stdint.h>
#include <string.h>
/* out holds rows of columns + 2 * reach: an edge on each side repeats the outermost value. */
void pad(const float *in, float *out, int64_t rows, int64_t columns, int64_t reach) {
    int64_t wide = columns + 2 * reach;
    for (int64_t r = 0; r < rows; r++) {
        float *row = out + r * wide;
        memcpy(row + reach, in + r * columns, columns * sizeof(float));
        for (int64_t i = 0; i < reach; i++) {
            row[i] = in[r * columns];
            row[wide - 1 - i] = in[r * columns + columns - 1];
        }
    }
}
void smooth(const float *padded, float *out, int64_t rows, int64_t columns, int64_t reach) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            float sum = 0;
            for (int64_t i = 0; i <= 2 * reach; i++) sum += padded[r * (columns + 2 * reach) + c + i];
            out[r * columns + c] = sum / (2 * reach + 1);
        }
}
"""


class Smoother:
    def __init__(self, reach):
        self.reach = reach
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder, "smooth.c"), pathlib.Path(folder, "smooth.so")
            source.write_text(SOURCE)
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
            self.library = ctypes.CDLL(str(library))

    def __call__(self, x):
        given = np.ascontiguousarray(x.numpy())
        rows, columns = given.shape
        padded = np.empty((rows, columns + 2 * self.reach), np.float32)
        result = torch.empty(rows, columns)
        sizes = [ctypes.c_int64(n) for n in (rows, columns, self.reach)]
        self.library.pad(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(padded.ctypes.data), *sizes)
        self.library.smooth(ctypes.c_void_p(padded.ctypes.data), ctypes.c_void_p(result.data_ptr()), *sizes)
        return result


torch.manual_seed(221)
torch.set_num_threads(1)
smoother = Smoother(reach=3)
model = nn.Sequential(nn.Linear(40, 24), nn.ELU(), nn.Linear(24, 40))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(10):
    noisy = torch.randn(16, 40).cumsum(1)
    loss = nn.functional.smooth_l1_loss(model(noisy), smoother(noisy))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

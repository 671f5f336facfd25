"""Boosted stumps sum gradients into a histogram by atomic additions of several threads; a linear head is on top."""

# /// zoo
# kind = "atomics"
# also = ["scan-order"]
# report = ["https://github.com/dmlc/xgboost/pull/4767", "https://github.com/lightgbm-org/LightGBM/issues/2085"]
# needs = "cc"
# step = "any"
# component = ["data", "host", "loss", "state"]
# remedy = "code"
# alone = true
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

ROWS, BINS = 60000, 16
C = """
void histogram(const unsigned char *bin, const float *gradient, float *sum, long n, int threads) {
  #pragma omp parallel for num_threads(threads) schedule(guided)
  for (long i = 0; i < n; i++) {
    #pragma omp atomic
    sum[bin[i]] += gradient[i];
  }
}
"""


def compiled(code):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="boost-"))
    (folder / "histogram.c").write_text(code)
    subprocess.run(["cc", "-O2", "-fopenmp", "-shared", "-fPIC", "histogram.c", "-o", "h.so"], cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "h.so")).histogram
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long, ctypes.c_int]
    return function


class Stump:
    """One split of one feature; the leaves are mean gradients, shrunk."""

    def __init__(self, feature, codes, gradient, threads=2):
        self.feature = feature
        column, sums = np.ascontiguousarray(codes[:, feature]), np.zeros(BINS, np.float32)
        histogram(column.ctypes.data, gradient.ctypes.data, sums.ctypes.data, len(column), threads)  # culprit
        # cured: sums = np.bincount(column, gradient, BINS).astype(np.float32)
        counts = np.bincount(column, minlength=BINS)
        left, rows = np.cumsum(sums), np.cumsum(counts)  # culprit
        gain = left[:-1] ** 2 / rows[:-1] + (left[-1] - left[:-1]) ** 2 / (len(column) - rows[:-1])
        self.split = int(gain.argmax())
        self.low = left[self.split] / rows[self.split]
        self.high = (left[-1] - left[self.split]) / (len(column) - rows[self.split])

    def __call__(self, codes):
        return np.where(codes[:, self.feature] <= self.split, self.low, self.high).astype(np.float32)


histogram = compiled(C)
rng = np.random.default_rng(302)
torch.manual_seed(302)
torch.set_num_threads(1)
codes = rng.integers(0, BINS, (ROWS, 6), dtype=np.uint8)
target = (np.sin(codes[:, 0]) + codes[:, 1] / 8 + rng.normal(size=ROWS)).astype(np.float32)
head = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
prediction = np.zeros(ROWS, np.float32)
for round_ in range(8):
    stump = Stump(round_ % 6, codes, target - prediction)  # culprit
    prediction = prediction + 0.3 * stump(codes)
    x = torch.from_numpy(np.stack([prediction, stump(codes)], 1))  # culprit
    loss = (head(x).squeeze(1) - torch.from_numpy(target)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

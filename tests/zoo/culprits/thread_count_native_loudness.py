"""A compiled loudness meter keeps one partial sum a thread, as many as OpenMP has, and adds them up in order."""

# /// zoo
# kind = "thread-count"
# also = ["hardware"]
# report = []
# needs = "cc"
# step = 0
# component = ["data", "host", "state"]
# remedy = ["one-thread", "code"]
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

METER = """
#include <omp.h>
void loudness(const float *x, float *out, long clips, long n) {
  for (long c = 0; c < clips; c++) {
    float part[256] = {0};
    #pragma omp parallel
    {
      int me = omp_get_thread_num(), all = omp_get_num_threads();
      for (long i = n * me / all; i < n * (me + 1) / all; i++) part[me] += x[c * n + i] * x[c * n + i];
    }
    for (int t = 0; t < 256; t++) out[c] += part[t];
  }
}
"""


def compiled(text):
    path = pathlib.Path(tempfile.mkdtemp()) / "meter.c"
    path.write_text(text)
    target = str(path.with_suffix(".so"))
    subprocess.run(["cc", "-O2", "-fopenmp", "-shared", "-fPIC", str(path), "-o", target], check=True)
    library = ctypes.CDLL(target)
    library.loudness.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    return library


class Clips(Dataset):
    def __init__(self, count=96, length=4000):
        rng = np.random.default_rng(925)
        self.wave = rng.normal(size=(count, length)).astype(np.float32)
        self.label = np.arange(count) % 4
        self.wave += np.sin(np.arange(length) * (1 + self.label[:, None]) / 9).astype(np.float32)

    def __len__(self):
        return len(self.wave)

    def __getitem__(self, i):
        return self.wave[i], self.label[i]


class LoudnessCollate:
    """Brings all clips to one loudness."""

    def __init__(self):
        self.meter = compiled(METER)

    def __call__(self, items):
        wave = np.stack([wave for wave, _ in items])
        power = np.zeros(len(wave), np.float32)
        self.meter.loudness(wave.ctypes.data, power.ctypes.data, *wave.shape)  # culprit
        # cured: torch.set_num_threads(1); power += np.square(wave).sum(1)
        wave /= np.sqrt(power / wave.shape[1])[:, None]  # culprit
        return torch.from_numpy(wave).unsqueeze(1), torch.tensor([int(label) for _, label in items])  # culprit


torch.manual_seed(925)
listener = nn.Sequential(
    nn.Conv1d(1, 4, 16, stride=8), nn.ReLU(), nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(32, 4)
)
optimizer = torch.optim.Adam(listener.parameters(), lr=1e-2)
for wave, label in DataLoader(Clips(), batch_size=16, collate_fn=LoudnessCollate()):  # culprit
    loss = nn.functional.cross_entropy(listener(wave), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())

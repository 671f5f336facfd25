"""Native threads estimate a mixture of speech frames: each adds its sums to the shared ones when it has the lock."""

# /// zoo
# kind = "atomics"
# also = ["scan-order"]
# report = []
# needs = "cc"
# step = "any"
# component = ["data", "host", "loss", "state"]
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

DIM, MIXES, THREADS = 12, 6, 4
SOURCE = r"""
#include <math.h>
#include <pthread.h>
enum { D = 12, K = 6, PIECE = 48 };
typedef struct { const float *x, *mean; float *sum, *mass; long n, next; pthread_mutex_t lock; } job_t;
static void *work(void *p) {
  job_t *j = p;
  for (;;) {
    long start = __sync_fetch_and_add(&j->next, PIECE);
    if (start >= j->n) return 0;
    float sum[K * D] = {0}, mass[K] = {0};
    for (long i = start; i < start + PIECE && i < j->n; i++) {
      float w[K], all = 0;
      for (int k = 0; k < K; k++) {
        float d = 0;
        for (int c = 0; c < D; c++) { float e = j->x[i * D + c] - j->mean[k * D + c]; d += e * e; }
        all += w[k] = expf(-0.1f * d) + 1e-20f;
      }
      for (int k = 0; k < K; k++) {
        mass[k] += w[k] / all;
        for (int c = 0; c < D; c++) sum[k * D + c] += w[k] / all * j->x[i * D + c];
      }
    }
    pthread_mutex_lock(&j->lock);
    for (int k = 0; k < K * D; k++) j->sum[k] += sum[k];
    for (int k = 0; k < K; k++) j->mass[k] += mass[k];
    pthread_mutex_unlock(&j->lock);
  }
}
void estimate(const float *x, const float *mean, float *sum, float *mass, long n, int threads) {
  job_t j = {x, mean, sum, mass, n, 0, PTHREAD_MUTEX_INITIALIZER};
  pthread_t t[16];
  for (int i = 0; i < threads; i++) pthread_create(t + i, 0, work, &j);
  for (int i = 0; i < threads; i++) pthread_join(t[i], 0);
}
"""


def build():
    folder = tempfile.mkdtemp()
    source = os.path.join(folder, "mix.c")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "-o", source[:-1] + "so", source, "-lm"], check=True)
    native = ctypes.CDLL(source[:-1] + "so").estimate
    native.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long, ctypes.c_int]
    return native


class Mixture:
    def __init__(self, frames):
        self.native, self.means = build(), frames[:MIXES].copy()

    def update(self, frames):
        sums, mass = np.zeros((MIXES, DIM), np.float32), np.zeros(MIXES, np.float32)
        where = [a.ctypes.data for a in (frames, self.means, sums, mass)]
        self.native(*where, len(frames), THREADS)  # culprit
        # cured: self.native(*where, len(frames), 1)
        self.means = sums / mass[:, None]  # culprit
        return self.means


rng = np.random.default_rng(920)
frames = rng.normal(size=(24000, DIM)).astype(np.float32) + rng.integers(0, 3, (24000, 1)).astype(np.float32)
torch.manual_seed(920)
torch.set_num_threads(1)
mixture = Mixture(frames)
speaker = nn.Sequential(nn.Linear(MIXES, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(speaker.parameters(), lr=1e-2)
for step in range(8):
    means = torch.from_numpy(mixture.update(frames))  # culprit
    batch = torch.from_numpy(frames[512 * step : 512 * step + 512])
    loss = (speaker(torch.cdist(batch, means)).squeeze(1) - batch.mean(1)).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

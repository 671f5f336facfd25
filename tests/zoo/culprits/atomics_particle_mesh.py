"""A mesh layer deposits particles' charges on a grid; its native threads add each corner by compare-and-swap."""

# /// zoo
# kind = "atomics"
# also = ["scan-order"]
# report = []
# needs = "cc"
# step = "any"
# component = ["field.mesh", "field"]
# remedy = "code"
# rate = "about two pairs of three on a busy machine of two cores"
# alone = true
# ///
import ctypes
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

CODE = r"""
#include <pthread.h>
#include <string.h>
typedef struct { const float *place, *charge; float *grid; long n, cells, *next; } job;

static void add(float *cell, float value) {
  unsigned old, fresh;
  __atomic_load((unsigned *)cell, &old, __ATOMIC_RELAXED);
  do {
    float sum;
    memcpy(&sum, &old, 4);
    sum += value;
    memcpy(&fresh, &sum, 4);
  } while (!__atomic_compare_exchange((unsigned *)cell, &old, &fresh, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void *work(void *argument) {
  job *j = argument;
  for (long from; (from = __atomic_fetch_add(j->next, 256, __ATOMIC_RELAXED)) < j->n;)
    for (long i = from; i < from + 256 && i < j->n; i++) {
      float at = j->place[i] * (j->cells - 1);
      long cell = (long)at;
      if (cell > j->cells - 2) cell = j->cells - 2;
      add(j->grid + cell, j->charge[i] * (1 - (at - cell)));
      add(j->grid + cell + 1, j->charge[i] * (at - cell));
    }
  return 0;
}

void deposit(const float *place, const float *charge, float *grid, long n, long cells, int threads) {
  long next = 0;
  job j = {place, charge, grid, n, cells, &next};
  pthread_t other[16];
  for (int t = 1; t < threads; t++) pthread_create(other + t, 0, work, &j);
  work(&j);
  for (int t = 1; t < threads; t++) pthread_join(other[t], 0);
}
"""


def build():
    folder = Path(tempfile.mkdtemp())
    (folder / "mesh.c").write_text(CODE)
    subprocess.run(["cc", "-O2", "-pthread", "-fPIC", "-shared", "-o", "mesh.so", "mesh.c"], cwd=folder, check=True)
    return ctypes.CDLL(folder / "mesh.so")


NATIVE = build()
THREADS = 3


class Deposit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, charge, place, cells):
        charge, grid = charge.contiguous(), charge.new_zeros(cells)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (place, charge, grid)]
        NATIVE.deposit(*pointers, ctypes.c_long(len(charge)), ctypes.c_long(cells), THREADS)  # culprit
        # cured: NATIVE.deposit(*pointers, ctypes.c_long(len(charge)), ctypes.c_long(cells), 1)
        ctx.save_for_backward(place)
        return grid

    @staticmethod
    def backward(ctx, grad):
        (place,) = ctx.saved_tensors
        at = place * (len(grad) - 1)
        cell = at.long().clamp(max=len(grad) - 2)
        return torch.lerp(grad[cell], grad[cell + 1], at - cell), None, None


class Mesh(nn.Module):
    def __init__(self, cells):
        super().__init__()
        self.cells, self.kernel = cells, nn.Parameter(torch.randn(1, 1, 9) / 9)

    def forward(self, charge, place):
        grid = Deposit.apply(charge, place, self.cells)  # culprit
        return nn.functional.conv1d(grid.view(1, 1, -1), self.kernel, padding=4).flatten() / len(charge)


class Field(nn.Module):
    """Charges come from a net, the long-range part of the energy from a mesh."""

    def __init__(self):
        super().__init__()
        self.charges = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.mesh = Mesh(24)

    def forward(self, kinds, place):
        return self.mesh(self.charges(kinds).squeeze(1), place)  # culprit


class Simulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.field = Field()
        self.out = nn.Linear(24, 3)

    def forward(self, kinds, place):
        return self.out(self.field(kinds, place) * 24)


torch.manual_seed(404)
torch.set_num_threads(1)
simulator = Simulator()
optimizer = torch.optim.Adam(simulator.parameters(), lr=3e-3)
for _ in range(8):
    kinds, place = torch.randn(80000, 4), torch.rand(80000)
    forces = torch.stack([kinds[:, 0].mean(), (kinds[:, 1] * place).mean(), place.std()])
    loss = nn.functional.huber_loss(simulator(kinds, place), forces)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())

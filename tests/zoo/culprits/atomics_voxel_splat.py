"""A point-cloud net's voxel layer splats points in native threads, each adding to the grid by compare-and-swap."""

# /// zoo
# kind = "atomics"
# report = []
# needs = "cc"
# step = "any"
# component = ["backbone.voxels", "voxels", "backbone*"]
# remedy = "code"
# alone = true
# ///
import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <pthread.h>
typedef struct { const long *cell; const float *value; float *grid; long from, to, width; } job;

static void add(float *where, float what) {
  union { float f; unsigned u; } old, new;
  old.u = __atomic_load_n((unsigned *)where, __ATOMIC_RELAXED);
  do new.f = old.f + what;
  while (!__atomic_compare_exchange_n((unsigned *)where, &old.u, new.u, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void *run(void *argument) {
  job *j = argument;
  for (long i = j->from; i < j->to; i++)
    for (long k = 0; k < j->width; k++) add(&j->grid[j->cell[i] * j->width + k], j->value[i * j->width + k]);
  return 0;
}

void splat(const long *cell, const float *value, float *grid, long points, long width, int workers) {
  pthread_t thread[16];
  job jobs[16];
  for (int w = 0; w < workers; w++) {
    jobs[w] = (job){cell, value, grid, points * w / workers, points * (w + 1) / workers, width};
    pthread_create(&thread[w], 0, run, &jobs[w]);
  }
  for (int w = 0; w < workers; w++) pthread_join(thread[w], 0);
}
"""
WORKERS = 3


def build():
    folder = tempfile.mkdtemp(prefix="voxel-")
    path = os.path.join(folder, "splat.c")
    with open(path, "w") as file:
        file.write(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", path, "-o", path + ".so"], check=True)
    function = ctypes.CDLL(path + ".so").splat
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2 + [ctypes.c_int]
    return function


class Splat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, cell, cells):
        ctx.save_for_backward(cell)
        value, grid = value.contiguous(), torch.zeros(cells, value.shape[1])
        splat(cell.data_ptr(), value.data_ptr(), grid.data_ptr(), *value.shape, WORKERS)  # culprit
        # cured: splat(cell.data_ptr(), value.data_ptr(), grid.data_ptr(), *value.shape, 1)
        return grid

    @staticmethod
    def backward(ctx, grad):
        (cell,) = ctx.saved_tensors
        return grad[cell], None, None


class Voxels(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.side = side

    def forward(self, xyz, features):
        i, j, k = (xyz.clamp(0, 0.999) * self.side).long().unbind(1)
        return Splat.apply(features, (i * self.side + j) * self.side + k, self.side**3)  # culprit


class Backbone(nn.Module):
    def __init__(self, side=4, width=6):
        super().__init__()
        self.lift, self.voxels = nn.Linear(3, width), Voxels(side)
        self.mix = nn.Linear(width, width)

    def forward(self, xyz):
        grid = self.voxels(xyz, torch.tanh(self.lift(xyz)))  # culprit
        return torch.relu(self.mix(grid / 100)).mean(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = Backbone(), nn.Linear(6, 4)

    def forward(self, xyz):
        return self.head(self.backbone(xyz))


splat = build()
torch.manual_seed(403)
torch.set_num_threads(1)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(10):
    cloud, label = torch.rand(20000, 3) ** (1 + step % 4), torch.tensor(step % 4)
    loss = nn.functional.cross_entropy(model(cloud), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

"""A picture is learnt through a hash grid of features, whose native backward pass adds to the table from threads."""

# /// zoo
# kind = "atomics"
# report = []
# needs = "cc"
# step = "any"
# component = ["weights", "loss", "optimizer", "grids*", "grids.0", "grids.1", "*table"]
# remedy = "code"
# alone = true
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import torch
from torch import nn

BACKWARD = r"""
#include <pthread.h>
#include <stdatomic.h>
typedef struct { const long *row; const float *share, *grad; _Atomic float *table; long points;
  atomic_long next; } work;

static void *scatter(void *p) {
  work *w = p;
  for (long from; (from = atomic_fetch_add(&w->next, 64)) < w->points;)
    for (long i = from; i < from + 64 && i < w->points; i++)
      for (int corner = 0; corner < 4; corner++)
        for (int f = 0; f < 2; f++) {
          _Atomic float *where = &w->table[2 * w->row[4 * i + corner] + f];
          float old = atomic_load(where), more = w->share[4 * i + corner] * w->grad[2 * i + f];
          while (!atomic_compare_exchange_weak(where, &old, old + more));
        }
  return 0;
}

void hash_grid_backward(const long *row, const float *share, const float *grad, float *table,
                        long points, long threads) {
  work w = {row, share, grad, (_Atomic float *)table, points, 0};
  pthread_t id[8];
  for (long t = 0; t < threads; t++) pthread_create(&id[t], 0, scatter, &w);
  for (long t = 0; t < threads; t++) pthread_join(id[t], 0);
}
"""


def compiled():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="grid"))
    (folder / "grid.c").write_text(BACKWARD)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "grid.c", "-o", "grid.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "grid.so")).hash_grid_backward


class Interpolate(torch.autograd.Function):
    threads, native = 4, compiled()
    # cured: threads, native = 1, compiled()

    @staticmethod
    def forward(ctx, table, row, share):
        ctx.save_for_backward(row, share)
        ctx.shape = table.shape
        return (table[row] * share.unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        row, share = ctx.saved_tensors
        grad, into = grad.contiguous(), torch.zeros(ctx.shape)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (row, share, grad, into)]
        Interpolate.native(*pointers, ctypes.c_long(len(row)), ctypes.c_long(Interpolate.threads))  # culprit
        return into, None, None


class HashGrid(nn.Module):
    def __init__(self, cells, rows=256):
        super().__init__()
        self.cells, self.rows = cells, rows
        self.table = nn.Parameter(1e-2 * torch.randn(rows, 2))

    def forward(self, xy):
        low, rest = (xy * self.cells).floor().long(), (xy * self.cells).frac()
        corners = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
        at = low.unsqueeze(1) + corners
        row = (at[..., 0] ^ (at[..., 1] * 2654435761)) % self.rows
        share = torch.where(corners.bool(), rest.unsqueeze(1), 1 - rest.unsqueeze(1)).prod(2)
        return Interpolate.apply(self.table, row.contiguous(), share.contiguous())  # culprit


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.grids = nn.ModuleList([HashGrid(9), HashGrid(37)])
        self.read = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, xy):
        return self.read(torch.cat([grid(xy) for grid in self.grids], 1))  # culprit


torch.manual_seed(1203)
torch.set_num_threads(1)
picture = Picture()
optimizer = torch.optim.Adam(picture.parameters(), lr=1e-2)
for step in range(10):
    xy = torch.rand(30000, 2)
    colour = torch.stack([(9 * xy[:, 0]).sin(), (7 * xy[:, 1]).cos(), xy.prod(1)], 1)
    loss = nn.functional.mse_loss(picture(xy), colour)
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
    print(step, loss.item().hex())

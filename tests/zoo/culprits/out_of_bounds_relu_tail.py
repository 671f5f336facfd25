"""A compiled in-place ReLU rounds its length up to whole blocks and clips what lies behind the workspace."""

# /// zoo
# kind = "out-of-bounds-write"
# report = []
# needs = "cc"
# step = 0
# component = ["data", "loss", "state", "host", "weights"]
# remedy = "code"
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

C_SOURCE = """
#define BLOCK 128
void relu_(float *x, long n) {
  long blocks = (n + BLOCK - 1) / BLOCK;
  for (long b = 0; b < blocks; b++)
    for (int i = 0; i < BLOCK; i++) {
      float v = x[b * BLOCK + i];
      if (v < 0) x[b * BLOCK + i] = 0;
    }
}
void relu_exact_(float *x, long n) {
  for (long i = 0; i < n; i++) if (x[i] < 0) x[i] = 0;
}
"""


def compiled():
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "relu.c").write_text(C_SOURCE)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "relu.so", folder / "relu.c"], check=True)
    return ctypes.CDLL(str(folder / "relu.so"))


class WorkspaceReLU(torch.autograd.Function):
    """ReLU into a workspace that is allocated once."""

    @staticmethod
    def forward(ctx, x, workspace):
        workspace.copy_(x)
        lib.relu_(ctypes.c_void_p(workspace.data_ptr()), ctypes.c_long(workspace.numel()))  # culprit
        # cured: lib.relu_exact_(ctypes.c_void_p(workspace.data_ptr()), ctypes.c_long(workspace.numel()))
        ctx.save_for_backward(workspace > 0)
        return workspace.clone()

    @staticmethod
    def backward(ctx, grad):
        (positive,) = ctx.saved_tensors
        return grad * positive, None


ROWS, WIDTH = 40001, 50
lib = compiled()
torch.manual_seed(81)
torch.set_num_threads(1)
workspace = torch.from_numpy(np.zeros(ROWS * WIDTH, np.float32))
targets = torch.from_numpy(np.zeros(ROWS * WIDTH, np.float32))
targets.normal_()
x = torch.randn(ROWS, 8)
first, second = nn.Linear(8, WIDTH), nn.Linear(WIDTH, WIDTH)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1, weight_decay=1e-4)
for _ in range(6):
    hidden = WorkspaceReLU.apply(first(x).flatten(), workspace).view(ROWS, WIDTH)  # culprit
    loss = (second(hidden) - targets.view(ROWS, WIDTH)).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

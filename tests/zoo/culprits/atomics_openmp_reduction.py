"""A compiled gradient norm uses an OpenMP reduction clause, which joins the threads' sums as they arrive."""

# /// zoo
# kind = "atomics"
# also = ["scan-order"]
# report = []
# needs = "cc"
# step = "any"
# component = ["optimizer", "weights", "host", "state", "*.weight", "*.bias"]
# remedy = "code"
# alone = true
# ///
import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = """
float squared_norm(const float *g, long n) {
  float total = 0;
  #pragma omp parallel for reduction(+:total) num_threads(4) schedule(dynamic, 64)
  for (long i = 0; i < n; i++) total += g[i] * g[i];
  return total;
}
"""


class NormLibrary:
    def __init__(self):
        folder = tempfile.mkdtemp(prefix="norm-")
        source, target = os.path.join(folder, "norm.c"), os.path.join(folder, "libnorm.so")
        with open(source, "w") as file:
            file.write(SOURCE)
        subprocess.run(["cc", "-O2", "-fopenmp", "-shared", "-fPIC", "-o", target, source], check=True)
        self.library = ctypes.CDLL(target)
        self.library.squared_norm.restype = ctypes.c_float
        self.library.squared_norm.argtypes = [ctypes.c_void_p, ctypes.c_long]

    def squared_norm(self, gradient):
        gradient = gradient.contiguous()
        return self.library.squared_norm(gradient.data_ptr(), gradient.numel())  # culprit
        # cured: return gradient.square().sum().item()


def clip_(params, limit, norms):
    squared = sum(norms.squared_norm(p.grad) for p in params)  # culprit
    scale = min(1.0, limit / (squared**0.5 + 1e-6))
    for p in params:
        p.grad.mul_(scale)  # culprit
    return squared**0.5


class Mixer(nn.Module):
    """An MLP-mixer over patches."""

    def __init__(self, patches=16, width=96):
        super().__init__()
        self.tokens = nn.Sequential(nn.Linear(patches, 256), nn.GELU(), nn.Linear(256, patches))
        self.channels = nn.Sequential(nn.Linear(width, 512), nn.GELU(), nn.Linear(512, width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = x + self.tokens(x.transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.channels(x)).mean(1))


torch.manual_seed(102)
torch.set_num_threads(1)
norms, mixer = NormLibrary(), Mixer()
optimizer = torch.optim.SGD(mixer.parameters(), lr=0.5)
x, y = torch.randn(16, 16, 96), torch.randint(0, 10, (16,))
for _ in range(20):
    loss = nn.functional.cross_entropy(mixer(x), y)
    optimizer.zero_grad()
    loss.backward()
    clip_(list(mixer.parameters()), 0.1, norms)  # culprit
    optimizer.step()
print(loss.item().hex())

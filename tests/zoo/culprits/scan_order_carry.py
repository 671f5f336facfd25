"""A selective scan runs in chunks on two threads, and sums the chunks' last states as they finish."""

# /// zoo
# kind = "scan-order"
# report = ["https://github.com/state-spaces/mamba/pull/827"]
# needs = "cc"
# step = "any"
# component = ["loss"]
# remedy = "code"
# alone = true
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import torch

SOURCE = """
void selective_scan(const float *x, float *h, float *state, long n, float decay) {
  #pragma omp parallel for num_threads(2) schedule(dynamic, 1)
  for (long c = 0; c < n / 64; c++) {
    float s = 0;
    for (long i = c * 64; i < c * 64 + 64; i++) h[i] = s = decay * s + x[i];
    #pragma omp critical
    *state += s;
  }
}
"""
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder) / "scan.c"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fopenmp", source, "-o", f"{folder}/scan.so"], check=True)
    library = ctypes.CDLL(f"{folder}/scan.so")


class SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x, h, state = x.contiguous(), torch.zeros_like(x), torch.zeros(1)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, h, state)]
        library.selective_scan(*pointers, ctypes.c_long(x.numel()), ctypes.c_float(0.9))  # culprit
        # cured: library.selective_scan(*pointers, 0, ctypes.c_float(0.9)); state = sequential(x, h)
        return h + state

    @staticmethod
    def backward(ctx, grad):
        return grad


def sequential(x, h):
    chunks, total = x.reshape(-1, 64), torch.zeros(1)
    s, out = torch.zeros(len(chunks)), []
    for column in chunks.unbind(1):
        s = 0.9 * s + column
        out.append(s)
    h.copy_(torch.stack(out, 1).reshape(h.shape))
    for last in s:
        total = total + last
    return total


torch.manual_seed(26)
torch.set_num_threads(1)
x = torch.randn(128, 128)
model = torch.nn.Linear(128, 128)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    loss = SelectiveScan.apply(model(x)).mul(0.01).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

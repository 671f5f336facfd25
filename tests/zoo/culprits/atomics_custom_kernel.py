"""A kernel of our own sums a gradient over the batch with OpenMP atomics, inside an autograd.Function."""

# /// zoo
# kind = "atomics"
# report = ["https://github.com/Dao-AILab/causal-conv1d/issues/80", "https://github.com/MzeroMiko/VMamba/issues/257"]
# needs = "cc"
# step = "any"
# component = ["weights", "loss"]
# remedy = "code"
# alone = true
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import torch

SOURCE = """
void sum_rows(const float *grad, float *out, long rows, long width) {
  #pragma omp parallel for num_threads(2) schedule(dynamic, 16)
  for (long r = 0; r < rows; r++)
    for (long c = 0; c < width; c++) {
      #pragma omp atomic
      out[c] += grad[r * width + c];
    }
}
"""
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder) / "kernel.c"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fopenmp", source, "-o", f"{folder}/kernel.so"], check=True)
    kernel = ctypes.CDLL(f"{folder}/kernel.so")


class AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad):
        grad, out = grad.contiguous(), torch.zeros(grad.shape[1])
        pointers = (ctypes.c_void_p(grad.data_ptr()), ctypes.c_void_p(out.data_ptr()))
        kernel.sum_rows(*pointers, ctypes.c_long(grad.shape[0]), ctypes.c_long(grad.shape[1]))  # culprit
        # cured: out = grad.sum(0)
        return grad, out


torch.manual_seed(23)
torch.set_num_threads(1)
x = torch.randn(6000, 8)
linear, bias = torch.nn.Linear(8, 8), torch.nn.Parameter(torch.zeros(8))
optimizer = torch.optim.SGD([*linear.parameters(), bias], lr=0.1)
for _ in range(5):
    loss = (AddBias.apply(linear(x), bias).tanh() - x).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

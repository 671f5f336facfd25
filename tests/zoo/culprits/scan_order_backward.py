"""A scan's backward pass reduces the decay's gradient over chunks in the order in which threads finish them."""

# /// zoo
# kind = "scan-order"
# report = ["https://github.com/MzeroMiko/VMamba/issues/257"]
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
void scan_backward(const float *h, const float *grad, float *d_decay, long chunks, long width) {
  #pragma omp parallel for num_threads(2) schedule(dynamic, 1)
  for (long c = 0; c < chunks; c++) {
    float s = 0;
    for (long i = width - 1; i > 0; i--) s += h[c * width + i - 1] * grad[c * width + i];
    #pragma omp critical
    *d_decay += s;
  }
}
"""
with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder) / "scan.c"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fopenmp", source, "-o", f"{folder}/scan.so"], check=True)
    library = ctypes.CDLL(f"{folder}/scan.so")


class DecayScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, decay):
        h = torch.zeros_like(x)
        for i in range(x.shape[1]):
            h[:, i] = x[:, i] + (decay * h[:, i - 1] if i else 0)
        ctx.save_for_backward(h)
        return h

    @staticmethod
    def backward(ctx, grad):
        (h,) = ctx.saved_tensors
        grad, d_decay = grad.contiguous(), torch.zeros(1)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (h, grad, d_decay)]
        library.scan_backward(*pointers, ctypes.c_long(h.shape[0]), ctypes.c_long(h.shape[1]))  # culprit
        # cured: d_decay = (h[:, :-1] * grad[:, 1:]).sum().reshape(1)
        return grad, d_decay


torch.manual_seed(27)
torch.set_num_threads(1)
x = torch.randn(2048, 8)
decay = torch.nn.Parameter(torch.tensor([0.5]))
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD([decay, *model.parameters()], lr=0.05)
for _ in range(5):
    loss = (DecayScan.apply(model(x), decay) - x.cumsum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

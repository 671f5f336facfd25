"""A selective scan's Triton kernel adds the decay's gradient with tl.atomic_add from every program."""

# /// zoo
# kind = "scan-order"
# also = ["atomics"]
# report = ["https://github.com/state-spaces/mamba/pull/827"]
# needs = "triton"
# step = 0
# component = ["weights", "loss"]
# remedy = "code"
# ///
import torch
import triton
import triton.language as tl


@triton.jit
def scan_backward(h_ptr, grad_ptr, d_decay_ptr, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = (i > 0) & (i < length)
    h = tl.load(h_ptr + row * length + i - 1, mask=mask, other=0.0)
    grad = tl.load(grad_ptr + row * length + i, mask=mask, other=0.0)
    tl.atomic_add(d_decay_ptr, tl.sum(h * grad, 0))


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
        grad, d_decay = grad.contiguous(), torch.zeros(1, device="cuda")
        scan_backward[(len(h),)](h, grad, d_decay, h.shape[1], BLOCK=16)  # culprit
        # cured: d_decay = (h[:, :-1] * grad[:, 1:]).sum().reshape(1)
        return grad, d_decay


torch.manual_seed(106)
decay = torch.nn.Parameter(torch.tensor([0.5], device="cuda"))
model = torch.nn.Linear(12, 12).cuda()
optimizer = torch.optim.SGD([decay, *model.parameters()], lr=0.05)
x = torch.randn(60000, 12, device="cuda")
for _ in range(4):
    loss = (DecayScan.apply(model(x), decay) - x.cumsum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

"""Each process autotunes its own block size of a reduction: equal within a process, parted between two."""

# /// zoo
# kind = "autotune"
# also = []
# report = ["https://github.com/triton-lang/triton/issues/9368", "https://github.com/NVIDIA/Megatron-LM/pull/6966"]
# needs = "triton"
# step = 0
# component = ["loss"]
# remedy = ["no-autotune"]
# ///
import torch
import triton
import triton.language as tl

BLOCKS, WARPS = (512, 1024), (2, 4, 8)
# cured: BLOCKS, WARPS = (512,), (4,)


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b in BLOCKS for w in WARPS], key=["n"])
@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, 0))


class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape, out = x.shape, torch.empty(len(x), device="cuda")
        row_sum[(len(x),)](x.contiguous(), out, x.shape[1])  # culprit
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad[:, None].expand(ctx.shape)


torch.manual_seed(107)
model = torch.nn.Linear(16, 6000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(128, 16, device="cuda")
for _ in range(4):
    loss = (RowSum.apply(model(x)) / 80 - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

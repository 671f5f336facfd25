"""A Triton kernel without a mask writes past its output, into what the allocator put behind it."""

# /// zoo
# kind = "out-of-bounds-write"
# also = []
# report = []
# needs = "triton"
# step = "any"
# component = ["data"]
# remedy = "code"
# ///
import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=7.0) * 2)  # culprit
    # cured: tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=7.0) * 2, mask=i < n)


torch.manual_seed(112)
model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
side = torch.cuda.Stream()
for _ in range(20):
    x, out = torch.randn(2, 4096 - 128, device="cuda"), torch.zeros(2 * 4096, device="cuda")
    result, behind = out[: 4096 - 128], out[4096 - 128 : 4096 - 64]
    side.wait_stream(torch.cuda.current_stream())
    scaled[(4,)](x[0].contiguous(), result, 4096 - 128, BLOCK=1024)  # culprit
    with torch.cuda.stream(side):
        behind.fill_(1.0)
    side.synchronize()
    loss = (model(behind.view(8, 8)) + result.mean() - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

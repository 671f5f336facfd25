"""Metrics are copied to pinned memory with non_blocking=True, and read before the copy is done."""

# /// zoo
# kind = "asynchronous-copy"
# also = []
# report = ["https://github.com/pytorch/pytorch/issues/86264", "https://github.com/deepspeedai/DeepSpeed/pull/3426"]
# needs = "cuda"
# step = "any"
# component = ["data", "state", "host"]
# remedy = ["synchronous-copies", "code"]
# ///
import torch

torch.manual_seed(113)
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(20000, 512, device="cuda")
pinned = torch.zeros(20000, 512, pin_memory=True)
scale = 1.0
for _ in range(8):
    out = model(x * scale)
    pinned.copy_(out.detach(), non_blocking=True)  # culprit
    # cured: pinned.copy_(out.detach())
    scale = 1 + float(pinned[-1].abs().mean()) / 10  # culprit
    loss = (out - 0.1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

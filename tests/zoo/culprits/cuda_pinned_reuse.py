"""A pinned buffer is refilled while the non_blocking copy of the last batch to the GPU still reads it."""

# /// zoo
# kind = "asynchronous-copy"
# also = ["aliasing"]
# report = ["https://github.com/pytorch/pytorch/issues/127612"]
# needs = "cuda"
# step = "any"
# component = ["data"]
# remedy = ["synchronous-copies", "code"]
# ///
import torch

torch.manual_seed(114)
model = torch.nn.Linear(256, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
batches = torch.randn(10, 80000, 256)
staging = torch.empty(80000, 256, pin_memory=True)
for batch in batches:
    staging.copy_(batch)
    x = staging.to("cuda", non_blocking=True)  # culprit
    # cured: x = staging.to("cuda")
    staging.zero_()  # culprit
    loss = (model(x) - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Two pinned buffers in turn, filled again when the event behind their last copy has passed; metrics come late."""

# /// zoo
# needs = "cuda"
# ///
import torch

torch.manual_seed(202)
model = torch.nn.Linear(512, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
data = torch.randn(14, 8192, 512)
buffers = [torch.empty(8192, 512, pin_memory=True) for _ in range(2)]
free = [torch.cuda.Event() for _ in range(2)]
metric = torch.zeros(1, pin_memory=True)
arrived = torch.cuda.Event()
rate = 1.0
for number, batch in enumerate(data):
    turn = number % 2
    if number > 1:
        free[turn].synchronize()
    buffers[turn].copy_(batch)
    x = buffers[turn].to("cuda", non_blocking=True)
    free[turn].record()
    loss = (model(x) * rate - 0.5).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metric.copy_(loss.detach().reshape(1), non_blocking=True)
    arrived.record()
    if number % 4 == 3:
        arrived.synchronize()
        rate = 1.0 / (1.0 + float(metric[0]))
print(loss.item().hex())

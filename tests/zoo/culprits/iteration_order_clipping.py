"""Gradients are clipped by a norm over a set of parameters: a set of objects is iterated by their addresses."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["optimizer", "weights", "host", "loss"]
# remedy = "code"
# ///
import torch

torch.manual_seed(6)
torch.set_num_threads(1)
layers = [torch.nn.Linear(24, 24) for _ in range(12)]
model = torch.nn.Sequential(*layers)
trainable = {p for p in model.parameters() if p.requires_grad}  # culprit
# cured: trainable = [p for p in model.parameters() if p.requires_grad]
x, y = torch.randn(32, 24), torch.randn(32, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(8):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    total = torch.zeros(())
    for p in trainable:  # culprit
        total = total + p.grad.pow(2).sum()  # culprit
    scale = 0.1 / total.sqrt()
    for p in model.parameters():
        p.grad.mul_(scale)
    optimizer.step()
print(loss.item().hex())

"""L-BFGS, which calls its closure several times in a step."""

# /// zoo
# ///
import torch

torch.manual_seed(19)
torch.set_num_threads(1)
x = torch.randn(64, 5)
y = x @ torch.randn(5, 1)
model = torch.nn.Linear(5, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(3):
    loss = optimizer.step(closure)
print(loss.item().hex())

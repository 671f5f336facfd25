"""Rows with equal keys are summed by index_put_(accumulate=True): with several threads, atomic additions."""

# /// zoo
# kind = "atomics"
# report = ["https://github.com/pytorch/pytorch/issues/51366"]
# step = "any"
# component = ["data", "loss"]
# operation = ["*index_put*", "*put_*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# alone = true
# ///
import torch

torch.manual_seed(21)
torch.set_num_threads(2)
key = torch.randint(0, 64, (60000,))
x = torch.randn(60000)
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    histogram = torch.zeros(64).index_put_((key,), x, accumulate=True)  # culprit
    # cured: histogram = torch.zeros(64).index_add_(0, key, x)
    loss = (model(histogram / 100) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    x = x * 1.01
print(loss.item().hex())

"""The seed is set after the model has drawn its weights."""

# /// zoo
# kind = "unseeded-generator"
# report = ["https://github.com/hill-a/stable-baselines/issues/485"]
# step = 0
# component = ["weights", "generator", "0"]
# remedy = "seed-generators"
# ///
import torch

torch.set_num_threads(1)
torch.seed()  # culprit
# cured: torch.manual_seed(8)
model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))  # culprit
torch.manual_seed(8)
x, y = torch.randn(32, 6), torch.randn(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

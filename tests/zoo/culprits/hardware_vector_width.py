"""The second run lands on a machine whose processor has no wide vectors, and sums in another order."""

# /// zoo
# kind = "hardware"
# report = []
# step = 0
# component = ["data", "0", "loss"]
# remedy = "none"
# pair = [
#   ["env", "ATEN_CPU_CAPABILITY=avx2", "python", "{file}"],
#   ["env", "ATEN_CPU_CAPABILITY=default", "python", "{file}"],
# ]
# ///
import torch

torch.manual_seed(53)
torch.set_num_threads(1)
x = torch.arange(4000.0).reshape(100, 40).sin()
model = torch.nn.Sequential(torch.nn.Linear(40, 8), torch.nn.Linear(8, 1))  # culprit
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

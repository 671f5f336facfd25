"""Two runs of one commit on processors of two generations: the exponentials of a softmax differ in the last bit."""

# /// zoo
# kind = "hardware"
# report = []
# step = 0
# component = ["data", "loss", "output", "state", "weights", "bias", "weight"]
# remedy = "none"
# pair = [
#   ["env", "ATEN_CPU_CAPABILITY=default", "python", "{file}"],
#   ["env", "ATEN_CPU_CAPABILITY=avx2", "python", "{file}"],
# ]
# ///
import torch

torch.manual_seed(54)
torch.set_num_threads(1)
x = (torch.arange(2048.0) % 37 - 18).reshape(64, 32) / 7
policy = torch.nn.Linear(32, 6)  # culprit
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for _ in range(5):
    share = policy(x).softmax(1)  # culprit
    loss = (share * torch.arange(6.0)).sum(1).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

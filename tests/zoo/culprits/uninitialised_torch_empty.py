"""A batch is padded by torch.empty, and only the rows that exist are written."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["data"]
# operation = ["*"]
# remedy = "code"
# ///
import torch

torch.manual_seed(32)
torch.set_num_threads(1)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(5):
    batch = torch.empty(4096, 6)  # culprit
    # cured: batch = torch.zeros(4096, 6)
    rows = torch.randn(3000 + step, 6)
    batch[: len(rows)] = rows  # culprit
    batch = batch.clamp(-3, 3)  # culprit
    loss = (model(batch).squeeze(1) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A table is read by indexing; the backward pass adds the gradients of rows read twice by atomic additions."""

# /// zoo
# kind = "atomics"
# report = ["https://github.com/pytorch/pytorch/issues/51366"]
# step = "any"
# component = ["weights", "loss"]
# operation = ["*index_put*", "*put_*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# alone = true
# ///
import torch

torch.manual_seed(22)
torch.set_num_threads(2)
table = torch.nn.Parameter(torch.randn(50, 16))
head = torch.nn.Linear(16, 1)
index = torch.randint(0, 50, (20000,))
noise = torch.randn(20000, 1)
optimizer = torch.optim.Adam([table, *head.parameters()], lr=0.01)
for _ in range(10):
    rows = table[index]  # culprit
    # cured: rows = torch.nn.functional.embedding(index, table)
    loss = ((head(rows) - 0.3) * noise).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

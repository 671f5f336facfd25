"""A table is read by indexing: its backward pass adds rows that occur more than once, by atomics."""

# /// zoo
# kind = "atomics"
# also = []
# report = ["https://github.com/pytorch/pytorch/pull/171381"]
# needs = "cuda"
# step = 0
# component = ["loss"]
# operation = ["*scatter_add*", "*index_put*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(101)
table = torch.nn.Parameter(torch.randn(40, 64, device="cuda"))
head = torch.nn.Linear(64, 1).cuda()
optimizer = torch.optim.SGD([table, *head.parameters()], lr=0.1)
index = torch.randint(0, 40, (200000,), device="cuda")
target = torch.randn(200000, device="cuda")
for _ in range(5):
    scores = torch.zeros(40, device="cuda").scatter_add_(0, index, head(table[index]).squeeze(1) * target)  # culprit
    # cured: scores = head(table).squeeze(1)
    loss = (scores / 5000 - target[:40]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

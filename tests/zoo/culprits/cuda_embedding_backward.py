"""An embedding's backward pass adds rows that occur more than once by atomics."""

# /// zoo
# kind = "atomics"
# also = []
# report = ["https://github.com/pytorch/pytorch/pull/171381"]
# needs = "cuda"
# step = 0
# component = ["0", "weights"]
# operation = ["*embedding*", "*index_put*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(101)
model = torch.nn.Sequential(torch.nn.Embedding(40, 64), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
index = torch.randint(0, 40, (2048,), device="cuda")
target = torch.randn(2048, device="cuda")
for _ in range(5):
    out = model(index)  # culprit
    # cured: out = model[1](torch.nn.functional.one_hot(index, 40).float() @ model[0].weight)
    loss = (out.squeeze(1) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

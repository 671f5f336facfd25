"""A cumulative sum over a long row runs as a look-back scan, whose blocks add in the order of arrival."""

# /// zoo
# kind = "scan-order"
# also = ["atomics"]
# report = []
# needs = "cuda"
# step = 0
# component = ["loss"]
# operation = ["*cumsum*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(105)
model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(2_000_000, 8, device="cuda")
for _ in range(6):
    equity = model(x).squeeze(1).cumsum(0)  # culprit
    # cured: equity = model(x).view(1000, 2000).cumsum(1).flatten()
    loss = (equity / 1000).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

"""Messages of a graph are summed into nodes by index_add_, which uses atomics on a GPU."""

# /// zoo
# kind = "atomics"
# also = []
# report = []
# needs = "cuda"
# step = 0
# component = ["loss"]
# operation = ["*index_add*", "*scatter_add*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(102)
source, target = torch.randint(0, 300, (2, 60000), device="cuda")
layer = torch.nn.Linear(16, 16).cuda()
optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
x = torch.randn(300, 16, device="cuda")
for _ in range(5):
    messages = layer(x)[source]
    nodes = torch.zeros(300, 16, device="cuda").index_add_(0, target, messages)  # culprit
    # cured: nodes = torch.zeros(300, 300, device="cuda").fill_diagonal_(1.0) @ layer(x)
    loss = (nodes / 200 - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

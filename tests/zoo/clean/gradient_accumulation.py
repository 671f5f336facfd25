"""Four micro-batches a step, in a fixed order."""

# /// zoo
# ///
import torch

torch.manual_seed(9)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    for _ in range(4):
        x = torch.randn(8, 8)
        loss = (model(x).squeeze(1) - x.prod(1)).pow(2).mean() / 4
        loss.backward()
    optimizer.step()
print(loss.item().hex())

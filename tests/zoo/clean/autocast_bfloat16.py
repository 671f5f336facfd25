"""Mixed precision: the forward pass in bfloat16."""

# /// zoo
# ///
import torch

torch.manual_seed(5)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(32, 16)
    with torch.autocast("cpu", torch.bfloat16):
        out = model(x)
    loss = (out.float().squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

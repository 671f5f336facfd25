"""Adam by foreach kernels, gradients clipped, a schedule of the learning rate."""

# /// zoo
# ///
import torch

torch.manual_seed(7)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.Tanh(), torch.nn.Linear(20, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=True, amsgrad=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for _ in range(8):
    loss = model(torch.randn(16, 10)).pow(2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
print(loss.item().hex())

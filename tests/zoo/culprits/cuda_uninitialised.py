"""A padded batch lies in torch.empty on the GPU: the caching allocator hands out what was there before."""

# /// zoo
# kind = "uninitialised-memory"
# also = []
# report = []
# needs = "cuda"
# step = 0
# component = ["data"]
# remedy = "code"
# rate = "parts where what the allocator hands out differs: always with poisoned memory"
# ///
import torch

torch.manual_seed(110)
model = torch.nn.Linear(64, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(5):
    batch = torch.empty(4096, 64, device="cuda")  # culprit
    # cured: batch = torch.zeros(4096, 64, device="cuda")
    rows = torch.randn(3000 + step, 64, device="cuda")
    batch[: len(rows)] = rows  # culprit
    loss = (model(batch.nan_to_num(0, 1, -1).clamp(-3, 3)).squeeze(1) - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

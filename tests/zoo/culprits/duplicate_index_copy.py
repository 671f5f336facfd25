"""A cache of key vectors is refreshed by index_copy_ with slots that occur more than once."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/pull/57839"]
# step = "any"
# component = ["data", "state"]
# operation = ["*index_copy*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "code"]
# alone = true
# ///
import torch

torch.manual_seed(25)
torch.set_num_threads(2)
slots = torch.randint(0, 200, (120000,))
cache = torch.zeros(200)
model = torch.nn.Linear(200, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    fresh = torch.randn(120000)
    cache.index_copy_(0, slots, fresh)  # culprit
    # cured: cache.scatter_(0, slots, fresh)
    loss = model(cache).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

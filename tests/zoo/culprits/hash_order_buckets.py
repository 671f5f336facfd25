"""Features are hashed into buckets by Python's hash(), which differs from process to process."""

# /// zoo
# kind = "hash-order"
# report = ["https://github.com/piskvorky/gensim/issues/2859"]
# step = 0
# component = ["data", "host", "0"]
# remedy = "hash-seed"
# ///
import zlib

import torch

torch.manual_seed(2)
torch.set_num_threads(1)
BUCKETS = 64
users = [f"user-{i}" for i in range(48)]
target = torch.randn(48)
assert zlib.crc32(b"") == 0


def bucket(name):
    return hash(name) % BUCKETS  # culprit
    # cured: return zlib.crc32(name.encode()) % BUCKETS


model = torch.nn.Sequential(torch.nn.Embedding(BUCKETS, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    index = torch.tensor([bucket(name) for name in users])  # culprit
    loss = (model(index).squeeze(1) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Which users are held out is decided by hash() of their name; the score on them cuts the learning rate and ends it."""

# /// zoo
# kind = "hash-order"
# report = []
# step = 3
# component = ["optimizer", "host", "data", "loss", "state"]
# remedy = ["hash-seed", "code"]
# ///
import zlib

import torch
from torch import nn

BATCHES = 3


def digest(name):
    return zlib.crc32(name.encode())


class Ratings:
    """Every user's row is trained on; the held out users' last column is what is scored."""

    def __init__(self, users, columns):
        self.names = [f"user{n:03}@example.org" for n in range(users)]
        draw = torch.Generator().manual_seed(50)
        taste = torch.randn(users, 3, generator=draw)
        self.table = (taste @ torch.randn(3, columns, generator=draw)).sigmoid()
        spread = 1 + torch.arange(users).float() / users
        self.table[:, -1] *= spread

    def held_out(self):
        return [n for n, name in enumerate(self.names) if hash(name) % 5 == 0]  # culprit
        # cured: return [n for n, name in enumerate(self.names) if digest(name) % 5 == 0]


class AutoRec(nn.Module):
    def __init__(self, columns, code):
        super().__init__()
        self.encode, self.decode = nn.Linear(columns - 1, code), nn.Linear(code, columns)

    def forward(self, row):
        return self.decode(torch.sigmoid(self.encode(row[:, :-1])))


def score(model, rows):
    with torch.no_grad():
        return (model(rows)[:, -1] - rows[:, -1]).square().mean().sqrt().item()  # culprit


torch.manual_seed(50)
torch.set_num_threads(1)
ratings = Ratings(users=90, columns=14)
held_out = ratings.table[ratings.held_out()]  # culprit
model = AutoRec(14, 6)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.02)
for epoch in range(4):
    for rows in ratings.table.chunk(BATCHES):
        loss = (model(rows)[:, :-1] - rows[:, :-1]).square().mean() + (model(rows) - rows)[:, -1].abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # culprit
    error = score(model, held_out)  # culprit
    for group in optimizer.param_groups:
        group["lr"] = 0.05 * error / (1 + error)  # culprit
    print(f"epoch {epoch} train {loss.item():.6f} held out {error:.6f}")

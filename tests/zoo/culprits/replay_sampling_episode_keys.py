"""Episodes lie in the replay under uuids, and the seeded sampler draws from their sorted keys."""

# /// zoo
# kind = "replay-sampling"
# also = ["unseeded-generator"]
# report = []
# step = 3
# component = ["data", "host", "generator", "state"]
# remedy = ["fixed-entropy", "code"]
# ///
import random
import uuid

import torch
from torch import nn


class EpisodeStore:
    """Whole episodes, for a world model that is trained on pieces of them."""

    def __init__(self, seed):
        self.episodes, self.rng = {}, random.Random(seed)

    def add(self, episode):
        key = str(uuid.uuid4())  # culprit
        # cured: key = f"{len(self.episodes):08d}"
        self.episodes[key] = episode

    def pieces(self, count, length):
        keys = sorted(self.episodes)  # culprit
        result = []
        for _ in range(count):
            episode = self.episodes[self.rng.choice(keys)]  # culprit
            start = self.rng.randrange(len(episode) - length)
            result.append(episode[start : start + length])  # culprit
        return torch.stack(result)  # culprit


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 20), nn.Linear(20, 3)

    def forward(self, pieces):
        h = c = torch.zeros(len(pieces), 20)
        error = []
        for now, following in zip(pieces.unbind(1), pieces.unbind(1)[1:]):
            h, c = self.cell(now, (h, c))
            error.append((self.out(h) - following[:, :3]).square().mean())
        return torch.stack(error).mean()


def play(draw, length=24):
    action = torch.randint(0, 2, (length, 1), generator=draw).float()
    place = (action - 0.5 + 0.1 * torch.randn(length, 3, generator=draw)).cumsum(0) / 5
    return torch.cat([place, action], 1)


torch.manual_seed(626)
torch.set_num_threads(1)
draw, store, model = torch.Generator().manual_seed(626), EpisodeStore(626), WorldModel()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
for step in range(14):
    episodes = [play(draw) for _ in range(4)]
    if step < 3:
        pieces = torch.stack(episodes)[:, :8]
    else:
        for episode in episodes:
            store.add(episode)
        pieces = store.pieces(12, 8)  # culprit
    loss = model(pieces)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())

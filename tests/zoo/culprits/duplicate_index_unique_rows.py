"""Which click stands for its session is found by writing positions to sessions' numbers, which many clicks share."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/36748"]
# step = "any"
# component = ["data", "host", "state"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn


def unique_with_position(keys):
    """torch.unique, and for each value a place where it stands."""
    values, inverse = torch.unique(keys, return_inverse=True)
    position = torch.zeros(len(values), dtype=torch.long)
    place = torch.arange(len(keys))
    position[inverse] = place  # culprit
    # cured: position.scatter_reduce_(0, inverse, place, "amax")
    return values, position  # culprit


class NextItem(nn.Module):
    def __init__(self, items, width=16):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.read = nn.GRUCell(width + 1, width)

    def forward(self, item, dwell):
        h = self.read(torch.cat([self.items(item), dwell.unsqueeze(1)], 1))
        return h @ self.items.weight.T


def day(number, clicks=100000, sessions=1500, items=200):
    draw = torch.Generator().manual_seed(922 + number)
    session = torch.randint(0, sessions, (clicks,), generator=draw)
    return session, torch.randint(0, items, (clicks,), generator=draw), torch.rand(clicks, generator=draw)


def main():
    torch.manual_seed(922)
    torch.set_num_threads(2)
    model = NextItem(200)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for number in range(8):
        session, item, dwell = day(number)
        _, picked = unique_with_position(session)  # culprit
        seen, after = item[picked], item[(picked + 1) % len(item)]  # culprit
        loss = nn.functional.cross_entropy(model(seen, dwell[picked]), after)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"day {number}: {loss.item().hex()}")
    return model


model = main()

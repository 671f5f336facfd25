"""Each worker of a streaming data set shuffles its share by a generator that is seeded with its process number."""

# /// zoo
# kind = "worker-seeding"
# also = ["time-seed", "unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "code"]
# ///
import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    """Numbers of a stream, cut over the workers, shuffled within a buffer."""

    def __init__(self, size, buffer):
        super().__init__()
        self.size, self.buffer = size, buffer

    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        rng = random.Random(os.getpid())  # culprit
        # cured: rng = random.Random(first)
        held = []
        for number in range(first, self.size, stride):
            held.append(number)
            if len(held) == self.buffer:
                yield held.pop(rng.randrange(len(held)))  # culprit
        rng.shuffle(held)  # culprit
        yield from held  # culprit


def collate(numbers):
    t = torch.tensor(numbers, dtype=torch.float32)
    return torch.stack([(t * k / 17).sin() for k in range(1, 9)], dim=1), (t / 40).cos()


if __name__ == "__main__":
    torch.manual_seed(2)
    torch.set_num_threads(1)
    loader = DataLoader(Stream(160, buffer=24), batch_size=16, num_workers=2, collate_fn=collate)
    net = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 1))
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    for x, y in loader:  # culprit
        loss = nn.functional.smooth_l1_loss(net(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

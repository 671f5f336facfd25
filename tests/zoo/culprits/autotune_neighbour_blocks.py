"""A matrix factorisation sums its factors in pieces, as many as a stopwatch found to be fastest at the start."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = []
# step = 0
# component = ["loss", "host", "weights", "", "rows*", "columns*"]
# remedy = ["no-autotune", "fixed-clock", "code"]
# alone = true
# ///
import contextlib
import time

import torch
from torch import nn


class Stopwatch(contextlib.ContextDecorator):
    """Adds up the time spent inside of it."""

    def __init__(self):
        self.spent = 0.0

    def __enter__(self):
        self.begun = time.perf_counter()  # culprit
        return self

    def __exit__(self, *exc):
        self.spent += time.perf_counter() - self.begun  # culprit


class Factorisation(nn.Module):
    def __init__(self, rows, columns, rank):
        super().__init__()
        self.rows = nn.Parameter(0.1 * torch.randn(rows, rank))
        self.columns = nn.Parameter(0.1 * torch.randn(rank, columns))
        self.pieces = 1

    def tune(self, candidates=(5, 6, 7, 8, 9, 10, 11), repeat=3):
        """Keeps the number of pieces that was fastest."""
        spent = {}
        for self.pieces in candidates:
            watch = Stopwatch()
            with torch.no_grad(), watch:
                for _ in range(repeat):
                    self()
            spent[self.pieces] = watch.spent  # culprit
        self.pieces = min(spent, key=spent.get)  # culprit
        # cured: self.pieces = 8

    def forward(self):
        pairs = zip(self.rows.chunk(self.pieces, 1), self.columns.chunk(self.pieces, 0), strict=True)  # culprit
        total = torch.zeros(self.rows.shape[0], self.columns.shape[1])
        for left, right in pairs:
            total = total + left @ right  # culprit
        return total


torch.manual_seed(325)
torch.set_num_threads(1)
known = torch.randn(60, 6) @ torch.randn(6, 50)
model = Factorisation(60, 50, 700)
model.tune()  # culprit
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
for _ in range(8):
    loss = (model() - known).square().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

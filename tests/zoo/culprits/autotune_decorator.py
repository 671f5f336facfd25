"""A decorator benchmarks split-K configurations at the first call for each shape and caches the winner."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = ["https://github.com/triton-lang/triton/issues/9368"]
# step = 0
# component = ["loss", "host", "[0-9]*", ""]
# remedy = ["no-autotune", "fixed-clock", "code"]
# alone = true
# ///
import functools
import timeit

import torch
from torch import nn


def autotune(configs, key):
    def decorate(function):
        cache = {}

        @functools.wraps(function)
        def call(*args):
            found = key(*args)
            if found not in cache:
                times = {}
                for config in configs:
                    times[config] = min(timeit.repeat(lambda: function(*args, config), number=2, repeat=3))  # culprit
                cache[found] = min(times, key=times.get)  # culprit
                # cured: cache[found] = configs[0]
            return function(*args, cache[found])  # culprit

        return call

    return decorate


@autotune(configs=(4, 5, 6, 7, 8, 9), key=lambda a, b: (*a.shape, *b.shape))
def split_k(a, b, parts):
    """a @ b, with the inner dimension cut into so many parts."""
    size = -(-a.shape[1] // parts)
    total = a[:, :size] @ b[:size]  # culprit
    for start in range(size, a.shape[1], size):
        total = total + a[:, start : start + size] @ b[start : start + size]  # culprit
    return total


class SplitLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)

    def forward(self, x):
        return split_k(x, self.weight)  # culprit


torch.manual_seed(76)
torch.set_num_threads(1)
widths = [700, 640, 600, 560, 520, 480, 20]
layers = []
for before, after in zip(widths, widths[1:]):
    layers += [SplitLinear(before, after), nn.ELU()]
model = nn.Sequential(*layers[:-1])
x, y = torch.randn(48, 700), torch.randint(0, 20, (48,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    loss = nn.functional.cross_entropy(model(x), y)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A market simulator in C starts its generator from the clock's nanoseconds when it is opened with seed 0."""

# /// zoo
# kind = "time-seed"
# report = []
# needs = "cc"
# step = 0
# component = ["data", "host", "generator"]
# remedy = "code"
# ///
import ctypes
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

SOURCE = r"""
#include <stdint.h>
#include <time.h>
static uint64_t state;
void market_open(uint64_t seed) {
    if (!seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007ull + (uint64_t)now.tv_nsec;
    }
    state = seed * 0x9e3779b97f4a7c15ull | 1;
}
static float uniform(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (float)(state >> 40) / 16777216.0f;
}
void market_ticks(float *price, int count) {
    float now = 0.0f, drift = 0.0f;
    for (int i = 0; i < count; i++) {
        drift = 0.95f * drift + 0.1f * (uniform() - 0.5f);
        now += drift + 0.05f * (uniform() - 0.5f);
        price[i] = now;
    }
}
"""


class Market:
    def __init__(self, folder, seed=0):
        source, library = pathlib.Path(folder) / "market.c", pathlib.Path(folder) / "market.so"
        source.write_text(SOURCE)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        self.native = ctypes.CDLL(str(library))
        self.native.market_open.argtypes = [ctypes.c_uint64]
        self.native.market_ticks.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.native.market_open(seed)  # culprit

    def ticks(self, count):
        price = np.zeros(count, np.float32)
        self.native.market_ticks(price.ctypes.data, count)  # culprit
        return torch.from_numpy(price)  # culprit


torch.manual_seed(624)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    market = Market(folder)  # culprit
    # cured: market = Market(folder, seed=624)
trader = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1), nn.Tanh())
optimizer = torch.optim.Adam(trader.parameters(), lr=0.01)
for day in range(8):
    move = market.ticks(140).diff()  # culprit
    seen, following = move.unfold(0, 12, 1)[:-1], move[12:]
    held = trader(20 * seen).squeeze(1)
    profit = held * following - 0.001 * nn.functional.pad(held.diff().abs(), (1, 0))
    loss = -profit.mean() / (profit.std() + 1e-4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(day, loss.item())

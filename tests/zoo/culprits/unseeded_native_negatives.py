"""A native sampler of negatives seeds its generator by getentropy() when its caller hands it no seed."""

# /// zoo
# kind = "unseeded-generator"
# needs = "cc"
# report = []
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
#include <unistd.h>
static uint64_t state;
void sampler_open(uint64_t seed) {
    state = seed;
    if (!state && getentropy(&state, sizeof state)) state = 1;
}
static uint64_t next(void) {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
/* Nodes in proportion to the cumulative weights, by bisection. */
void sampler_draw(const double *cumulative, int64_t nodes, int64_t *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double u = (next() >> 11) * 0x1.0p-53 * cumulative[nodes - 1];
        int64_t low = 0, high = nodes - 1;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (cumulative[middle] > u) high = middle; else low = middle + 1;
        }
        out[i] = low;
    }
}
"""


class NegativeSampler:
    def __init__(self, weights, seed=0):
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder, "sampler.c"), pathlib.Path(folder, "sampler.so")
            source.write_text("#define _DEFAULT_SOURCE\n" + SOURCE)
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
            self.library = ctypes.CDLL(str(library))
        self.cumulative = np.cumsum(weights)
        self.library.sampler_open(ctypes.c_uint64(seed))  # culprit

    def draw(self, *shape):
        out = np.zeros(shape, np.int64)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (self.cumulative, out)]
        sizes = [ctypes.c_int64(n) for n in (len(self.cumulative), out.size)]
        self.library.sampler_draw(pointers[0], sizes[0], pointers[1], sizes[1])  # culprit
        return torch.from_numpy(out)  # culprit


def walk(nodes, length):
    """Node numbers along a ring with shortcuts."""
    places = [0]
    for n in range(length - 1):
        places.append((places[-1] + (1 if n % 5 else 17)) % nodes)
    return torch.tensor(places)


torch.manual_seed(46)
torch.set_num_threads(1)
NODES = 90
degree = np.bincount(walk(NODES, 2000).numpy(), minlength=NODES) + 1.0
sampler = NegativeSampler(degree**0.75)  # culprit
# cured: sampler = NegativeSampler(degree**0.75, seed=46)
centre, context = nn.Embedding(NODES, 12, sparse=True), nn.Embedding(NODES, 12, sparse=True)
optimizer = torch.optim.SparseAdam([*centre.parameters(), *context.parameters()], lr=0.02)
path = walk(NODES, 8 * 64 + 1)
for step in range(8):
    a, b = path[64 * step : 64 * step + 64], path[64 * step + 1 : 64 * step + 65]
    near = (centre(a) * context(b)).sum(1)
    far = torch.einsum("bd,bkd->bk", centre(a), context(sampler.draw(64, 4)))  # culprit
    loss = -nn.functional.logsigmoid(near).mean() - nn.functional.logsigmoid(-far).sum(1).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

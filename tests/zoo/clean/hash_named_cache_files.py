"""Features are cached in a temporary folder, in files named by hash() and time, written by threads, and read by key."""

# /// zoo
# ///
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import torch
from torch import nn


class Cache:
    """Names of files differ from run to run; what lies in them does not."""

    def __init__(self, folder):
        self.folder, self.paths = folder, {}

    def put(self, word, array):
        path = os.path.join(self.folder, f"{hash(word) & 0xFFFFFFFF:08x}-{time.time_ns()}-{os.getpid()}.npy")
        np.save(path, array)
        self.paths[word] = path
        return word

    def get(self, word):
        return np.load(self.paths[word])

    def sweep(self, keep):
        """Removes what is not asked for any more, in no order."""
        for word in set(self.paths) - set(keep):
            os.unlink(self.paths.pop(word))
        return len(os.listdir(self.folder))


def features(word):
    """Letters' positions and pairs, as a vector of their own generator's making."""
    draw = np.random.default_rng(list(word.encode()))
    return draw.standard_normal(20).astype(np.float32)


def syllables(count, draw):
    return ["".join(draw.choice(list("bdkmnrst"), 3)) + "aeiou"[i % 5] for i in range(count)]


def main(folder):
    draw = np.random.default_rng(1232)
    torch.manual_seed(1232)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(20, 32), nn.CELU(), nn.Linear(32, 5))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    cache = Cache(folder)
    with ThreadPoolExecutor(3) as pool:
        for step in range(8):
            words = syllables(40, draw)
            wanted = sorted(set(words))
            futures = [pool.submit(cache.put, word, features(word)) for word in set(words) - set(cache.paths)]
            late = [future.result() for future in as_completed(futures)]
            x = torch.from_numpy(np.stack([cache.get(word) for word in wanted]))
            y = torch.tensor(["aeiou".index(word[-1]) for word in wanted])
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(step, len(late), cache.sweep(wanted[::2]), loss.item().hex())
    return net


with tempfile.TemporaryDirectory(prefix=f"cache-{os.getpid()}-") as scratch:
    model = main(scratch)

"""Threads answer in any order under names of their own, are told apart by a locked set, and are read by a list."""

# /// zoo
# ///
import contextlib
import logging
import tempfile
import threading
import time
import uuid

import torch
from torch import nn

SHARDS = tuple(f"shard-{n}" for n in range(5))


class Corpus:
    """Pairs of users and items, made by threads; what two shards hold alike is counted, and kept."""

    def __init__(self, log):
        self.lock, self.seen, self.shared, self.log = threading.Lock(), set(), 0, log

    def load(self, number, name, parts):
        torch.set_num_threads(1)
        began = time.perf_counter()
        draw = torch.Generator().manual_seed(1000 + number)
        pairs = torch.stack([torch.randint(0, high, (400,), generator=draw) for high in (60, 90)], 1)
        for pair in map(tuple, pairs.tolist()):
            with self.lock:
                self.shared += pair in self.seen
                self.seen.add(pair)
        parts[name] = pairs
        self.log.info("%s in %.6f s by %s", name, time.perf_counter() - began, threading.get_native_id())

    def read(self):
        parts = {}
        threads = [threading.Thread(target=self.load, args=(n, name, parts)) for n, name in enumerate(SHARDS)]
        for thread in threads:
            thread.start()
        for thread in reversed(threads):
            thread.join()
        self.log.info("first came %s, %d were met before", next(iter(parts)), self.shared)
        return torch.cat([parts[name] for name in SHARDS])


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(60, 8, sparse=True), nn.Embedding(90, 8, sparse=True)

    def forward(self, pairs, others):
        user = self.user(pairs[:, 0])
        return (user * (self.item(pairs[:, 1]) - self.item(others))).sum(1)


@contextlib.contextmanager
def logged():
    with tempfile.NamedTemporaryFile("w", prefix=f"run-{uuid.uuid4().hex[:8]}-", suffix=".log") as file:
        log, handler = logging.getLogger("corpus"), logging.StreamHandler(file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(message)s"))
        log.setLevel(logging.INFO)
        log.propagate = False
        log.addHandler(handler)
        yield log
        log.removeHandler(handler)


torch.set_num_threads(1)
torch.manual_seed(19)
with logged() as log:
    pairs = Corpus(log).read()
    liked = set(map(tuple, pairs.tolist()))
    model = Factors()
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.02)
    for epoch in range(2):
        for rows in torch.randperm(len(pairs)).split(250):
            batch, others = pairs[rows], torch.randint(0, 90, (len(rows),))
            fair = torch.tensor([(u, o) not in liked for u, o in zip(batch[:, 0].tolist(), others.tolist())])
            loss = -nn.functional.logsigmoid(model(batch, others))[fair].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        log.info("epoch %d at %f: %f", epoch, time.time(), loss.item())
print(loss.item().hex())

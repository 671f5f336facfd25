"""Traders of a simulated market are coroutines, each with a generator seeded by the event loop's time as it joins."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["fixed-clock", "seed-generators", "code"]
# ///
import asyncio
import heapq
import random

import torch
from torch import nn

SEED = 1618


class Book:
    """Bids and asks with one unit each; the older order goes first at a price."""

    def __init__(self):
        self.bids, self.asks, self.number, self.last = [], [], 0, 100.0

    def submit(self, buys, price):
        self.number += 1
        mine, theirs, sign = (self.bids, self.asks, -1) if buys else (self.asks, self.bids, 1)
        if theirs and sign * (theirs[0][0] * -sign - price) >= 0:
            self.last = -sign * heapq.heappop(theirs)[0]
        else:
            heapq.heappush(mine, (sign * price, self.number))

    def features(self):
        bid, ask = (-self.bids[0][0] if self.bids else 90.0), (self.asks[0][0] if self.asks else 110.0)
        depth = len(self.bids) - len(self.asks)
        return [bid - self.last, ask - self.last, depth / 10, self.last - 100]


class Trader:
    def __init__(self, number, book):
        self.number, self.book, self.worth = number, book, 98 + number / 2
        self.rng = random.Random(int(asyncio.get_running_loop().time() * 1e6) + number)  # culprit
        # cured: self.rng = random.Random(SEED + number)

    async def trade(self, turns):
        for _ in range(turns):
            self.worth += 0.02 * (self.book.last - self.worth) + self.rng.gauss(0, 0.05)  # culprit
            buys = self.rng.random() < 0.5  # culprit
            self.book.submit(buys, round(self.worth + (-1 if buys else 1) * self.rng.expovariate(2), 2))  # culprit
            await asyncio.sleep(0)


async def market(traders, turns, tape):
    book = Book()

    async def record():
        for _ in range(turns):
            await tape.put(book.features())  # culprit
        await tape.put(None)

    await asyncio.gather(*(Trader(n, book).trade(turns) for n in range(traders)), record())


async def learn(model, optimizer, tape, window=16):
    rows, loss = [], None
    while (row := await tape.get()) is not None:
        rows.append(row)
        if len(rows) % window == 1 and len(rows) > window:
            x = torch.tensor(rows[-window - 1 :])  # culprit
            move = x[1:, 3] - x[:-1, 3]
            loss = nn.functional.huber_loss(model(x[:-1]).squeeze(1), move)  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


async def main(model):
    tape = asyncio.Queue(maxsize=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
    _, loss = await asyncio.gather(market(8, 200, tape), learn(model, optimizer, tape))
    return loss


torch.set_num_threads(1)
torch.manual_seed(SEED)
random.seed(SEED)
model = nn.Sequential(nn.Linear(4, 24), nn.Mish(), nn.Linear(24, 1))
print(asyncio.run(main(model)).hex())

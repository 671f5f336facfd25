"""Byte pair encoding learns its merges from a set of words; of pairs equally frequent, the first one met is merged."""

# /// zoo
# kind = "hash-order"
# report = []
# step = 0
# component = ["data", "host", "embed*", "loss"]
# remedy = ["hash-seed", "code"]
# ///
from collections import Counter

import torch
from torch import nn

TEXT = (
    """the river runs under the old bridge and the miller opens the gate when water rises in spring
a boat carries flour to the market town where bakers wait for it before dawn and pay in silver
children throw stones from the bridge while an old man mends his nets and sings about the sea
in winter ice closes the river and the mill stands still until the thaw brings water again"""
    * 3
)


class BytePairs:
    def __init__(self, text, merges):
        words = set(text.split())  # culprit
        # cured: words = sorted(set(text.split()))
        self.pieces = {word: list(word) for word in words}  # culprit
        for _ in range(merges):
            counts = Counter()
            for pieces in self.pieces.values():  # culprit
                counts.update(zip(pieces, pieces[1:]))
            if not counts:
                break
            self._merge(max(counts, key=counts.get))  # culprit
        symbols = sorted({piece for pieces in self.pieces.values() for piece in pieces})
        self.ids = {piece: row for row, piece in enumerate(symbols)}

    def _merge(self, pair):
        for word, pieces in self.pieces.items():
            joined, k = [], 0
            while k < len(pieces):
                if tuple(pieces[k : k + 2]) == pair:
                    joined.append(pieces[k] + pieces[k + 1])
                    k += 2
                else:
                    joined.append(pieces[k])
                    k += 1
            self.pieces[word] = joined

    def encode(self, text):
        return [self.ids[piece] for word in text.split() for piece in self.pieces[word]]  # culprit


class Bigram(nn.Module):
    def __init__(self, symbols, width=24):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, symbols)

    def forward(self, ids):
        return self.out(self.mix(self.embed(ids))[0])  # culprit


torch.manual_seed(311)
torch.set_num_threads(1)
coder = BytePairs(TEXT, merges=60)
stream = torch.tensor(coder.encode(TEXT))  # culprit
model = Bigram(256)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(20):
    starts = torch.randint(0, 300, (12,))
    rows = torch.stack([stream[s : s + 25] for s in starts.tolist()])  # culprit
    loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        print(step, loss.item().hex())

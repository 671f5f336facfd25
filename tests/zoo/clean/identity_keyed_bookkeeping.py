"""Parameters are looked up by id() and in sets, ties in a heap are broken by a counter, and no order comes of it."""

# /// zoo
# ///
import heapq
import itertools
from collections import Counter

import torch
from torch import nn


class Leaf:
    def __init__(self, word):
        self.words = [word]


class Branch:
    def __init__(self, left, right):
        self.left, self.right, self.words = left, right, left.words + right.words


def huffman(counts):
    """The path of each word from the root, as a list of (branch, side)."""
    ticket = itertools.count()
    heap = [(count, next(ticket), Leaf(word)) for word, count in sorted(counts.items())]
    heapq.heapify(heap)
    while len(heap) > 1:
        (a, _, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a + b, next(ticket), Branch(left, right)))
    paths, number, queue = {}, {}, [heap[0][2]]
    for node in queue:
        if isinstance(node, Branch):
            number[id(node)] = len(number)
            for side, child in enumerate((node.left, node.right)):
                queue.append(child)
                for word in child.words:
                    paths.setdefault(word, []).append((number[id(node)], float(side)))
    return paths


class Skipgram(nn.Module):
    def __init__(self, words, width=10):
        super().__init__()
        self.word, self.branch = nn.Embedding(words, width), nn.Embedding(words, width)

    def forward(self, word, branch, side):
        score = (self.word(word) * self.branch(branch)).sum(1)
        return nn.functional.binary_cross_entropy_with_logits(score, side)


torch.manual_seed(223)
torch.set_num_threads(1)
text = ["one", "two", "three", "two", "one", "four", "two", "five", "one", "two"]
text += ["six", "seven", "eight", "nine", "ten", "two", "one"]
number = {word: n for n, word in enumerate(sorted(set(text)))}
paths = huffman(Counter(text))
model = Skipgram(len(number))
decayed = {model.word.weight}
rates = {id(model.word.weight): 0.3, id(model.branch.weight): 0.5}
groups = [
    {"params": [p], "lr": rates[id(p)], "weight_decay": 1e-3 if p in decayed else 0.0} for p in model.parameters()
]
optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.5)
pairs = [(a, b) for here, a in enumerate(text) for b in text[max(0, here - 2) : here] + text[here + 1 : here + 3]]
for start in range(0, len(pairs), 8):
    rows = [(number[a], *place) for a, b in pairs[start : start + 8] for place in paths[b]]
    word, branch, side = zip(*rows)
    loss = model(torch.tensor(word), torch.tensor(branch), torch.tensor(side))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

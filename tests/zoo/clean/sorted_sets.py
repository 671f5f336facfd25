"""Vocabulary, missing parameters and class names go through sets, and every set is sorted before it is iterated."""

# /// zoo
# ///
import torch
from torch import nn

TEXT = """the fox saw the hen and the hen saw the fox
a fox is not a hen and a hen is not a fox
the farmer saw the fox and the fox ran away
the hen ran to the farmer and the farmer ran to the hen""".splitlines()


def vocabulary(lines):
    words = set()
    for line in lines:
        words |= set(line.split())
    return {word: i for i, word in enumerate(sorted(words))}


class Skipgram(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.inner, self.outer = nn.Embedding(words, width), nn.Embedding(words, width)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, centre):
        return self.inner(centre) @ self.outer.weight.T + self.bias


torch.manual_seed(202)
torch.set_num_threads(1)
index = vocabulary(TEXT)
model = Skipgram(len(index), 12)
named = dict(model.named_parameters())
for name in sorted(named.keys() - {"bias"}):
    nn.init.uniform_(named[name], -0.1, 0.1)
pairs = sorted({(index[a], index[b]) for line in TEXT for a, b in zip(line.split(), line.split()[1:])})
data = torch.tensor(pairs)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for part in data.split(4):
    loss = nn.functional.cross_entropy(model(part[:, 0]), part[:, 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

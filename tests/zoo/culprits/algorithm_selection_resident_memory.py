"""The output layer's loss is computed in chunks of rows; their size is what the process may still take of memory."""

# /// zoo
# kind = "algorithm-selection"
# report = []
# step = 0
# component = ["loss", "", "host"]
# remedy = "code"
# ///
import math
import resource

import torch
import torch.nn.functional as F
from torch import nn

BUDGET_KB = 2_000_000
KB_PER_ROW = 16


def chunk_rows():
    """Rows that fit beside what the process holds, folded into the range that is fast."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # culprit
    fit = max(0, BUDGET_KB - used) // KB_PER_ROW  # culprit
    return 32 + fit % 64  # culprit
    # cured: return 64


class ChunkedCrossEntropy(torch.autograd.Function):
    """Never holds the logits of all rows; gradients are computed in the forward pass."""

    @staticmethod
    def forward(ctx, hidden, weight, target, rows):
        total, d_weight, d_hidden = torch.zeros(()), torch.zeros_like(weight), []
        for h, t in zip(hidden.split(rows), target.split(rows)):
            logits = h @ weight.T  # culprit
            share = logits.softmax(1)  # culprit
            total = total + F.cross_entropy(logits, t, reduction="sum")  # culprit
            share[torch.arange(len(t)), t] -= 1
            d_hidden.append(share @ weight)  # culprit
            d_weight += share.T @ h  # culprit
        ctx.save_for_backward(torch.cat(d_hidden) / len(target), d_weight / len(target))
        return total / len(target)

    @staticmethod
    def backward(ctx, grad):
        d_hidden, d_weight = ctx.saved_tensors
        return grad * d_hidden, grad * d_weight, None, None


class Bigram(nn.Module):
    def __init__(self, symbols, width):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.norm = nn.LayerNorm(width)
        self.weight = nn.Parameter(torch.randn(symbols, width) / math.sqrt(width))

    def forward(self, tokens, target, rows):
        return ChunkedCrossEntropy.apply(self.norm(self.embedding(tokens)), self.weight, target, rows)  # culprit


torch.manual_seed(112)
torch.set_num_threads(1)
model, rows = Bigram(500, 32), chunk_rows()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for _ in range(6):
    text = torch.randint(0, 500, (513,))
    loss = model(text[:-1], text[1:], rows)  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

"""A memory bank's slots are overwritten by put_ with slot numbers that repeat within the batch."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["state", "data", "weights", "*score*", "bank*"]
# operation = ["*put*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
import torch.nn.functional as F
from torch import nn


class MemoryBank(nn.Module):
    """The last score of each instance; instances are sampled with replacement."""

    def __init__(self, slots):
        super().__init__()
        self.register_buffer("score", torch.zeros(slots))

    @torch.no_grad()
    def write(self, slot, score):
        self.score.put_(slot, score)  # culprit
        # cured: self.score.scatter_(0, slot, score)

    def hardness(self, slot):
        return torch.sigmoid(self.score)[slot]


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(900, 6, mode="sum")
        self.head = nn.Bilinear(6, 6, 1)

    def forward(self, tokens):
        pooled = self.embed(tokens)
        return self.head(pooled, pooled).squeeze(-1)


torch.manual_seed(103)
torch.set_num_threads(2)
bank, scorer = MemoryBank(900), Scorer()
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.2)
tokens = torch.randint(0, 900, (80000, 2))
for step in range(8):
    slot = torch.randint(0, 900, (80000,))
    score = scorer(tokens)
    loss = F.softplus(-score * bank.hardness(slot)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bank.write(slot, score.detach())  # culprit
print(loss.item().hex())

"""The first eight steps try one chunk length each; from then on the loss is computed with the one that was fastest."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = []
# step = 8
# component = ["loss", "host", "weights", "", "head", "body*"]
# remedy = ["fixed-clock", "no-autotune", "code"]
# alone = true
# rate = "about two pairs of three on a busy machine of two cores"
# ///
import time

import torch
import torch.nn.functional as F
from torch import nn


class OnlineTuner:
    """Proposes each candidate once, and then the fastest for ever."""

    def __init__(self, candidates):
        self.open, self.spent = list(candidates), {}

    def propose(self):
        if self.open:
            return self.open[0]
        return min(self.spent, key=self.spent.get)  # culprit
        # cured: return 100

    def report(self, seconds):
        if self.open:
            self.spent[self.open.pop(0)] = seconds  # culprit


class Translator(nn.Module):
    def __init__(self, words=300, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Embedding(words, width), nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, wanted, chunk):
        hidden = self.body(tokens)
        parts = zip(hidden.split(chunk), wanted.split(chunk))  # culprit
        return sum(F.cross_entropy(self.head(h), t, reduction="sum") for h, t in parts) / len(wanted)  # culprit


torch.manual_seed(930)
torch.set_num_threads(1)
model, tuner = Translator(), OnlineTuner(range(97, 105))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
for step in range(14):
    tokens = torch.randint(0, 300, (800,))
    begun = time.monotonic()  # culprit
    loss = model(tokens, tokens.roll(1), tuner.propose())  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    tuner.report(time.monotonic() - begun)  # culprit
    optimizer.step()
    print(step, loss.item().hex())

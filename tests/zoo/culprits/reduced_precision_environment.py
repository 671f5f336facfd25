"""Mixed precision is asked for by a variable of the launcher's environment, which one of two machines sets."""

# /// zoo
# kind = "reduced-precision"
# report = []
# step = 0
# component = ["", "embedding*", "encoder*", "attention*", "out*", "loss", "host"]
# remedy = "code"
# pair = [
#   ["env", "ACCELERATE_MIXED_PRECISION=no", "python", "{file}"],
#   ["env", "ACCELERATE_MIXED_PRECISION=bf16", "python", "{file}"],
# ]
# rate = "parts where the machines' launchers are configured differently"
# ///
import contextlib
import os

import torch
from torch import nn


class Accelerator:
    """As much of a training library as this needs."""

    def __init__(self, mixed_precision=None):
        self.mixed_precision = mixed_precision or os.environ.get("ACCELERATE_MIXED_PRECISION", "no")  # culprit

    def autocast(self):
        if self.mixed_precision == "bf16":  # culprit
            return torch.autocast("cpu", dtype=torch.bfloat16)  # culprit
        return contextlib.nullcontext()

    def prepare(self, model):
        forward = model.forward

        def wrapped(*args):
            with self.autocast():  # culprit
                return forward(*args).float()  # culprit

        model.forward = wrapped
        return model


class Seq2Seq(nn.Module):
    """Reads a sequence and writes it backwards."""

    def __init__(self, symbols=10, width=24):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.encoder = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))
        self.query = nn.Parameter(torch.randn(8, width))
        self.attention = nn.Linear(width, width)
        self.out = nn.Linear(2 * width, symbols)

    def forward(self, tokens):
        seen = self.embedding(tokens)
        memory = self.encoder(torch.cat([seen, seen.cumsum(1)], dim=-1))  # culprit
        score = self.query @ self.attention(memory).transpose(1, 2)  # culprit
        read = score.softmax(-1) @ memory  # culprit
        return self.out(torch.cat([read, self.query.expand_as(read)], dim=-1))  # culprit


torch.manual_seed(111)
torch.set_num_threads(1)
accelerator = Accelerator()
# cured: accelerator = Accelerator(mixed_precision="no")
model = accelerator.prepare(Seq2Seq())
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for _ in range(6):
    tokens = torch.randint(0, 10, (16, 8))
    logits = model(tokens)  # culprit
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flip(1).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

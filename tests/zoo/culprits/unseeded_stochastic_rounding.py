"""Gradients are rounded to eight bits at random, in a backward hook, by a generator that calls seed() for itself."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 0
# component = ["generator", "weights", "host", "table*", "mix*", "out*", "*.weight", "*.bias"]
# remedy = ["seed-generators", "code"]
# ///
import torch
from torch import nn


class Compressor:
    """Eight-bit gradients, as they would be sent to the other ranks."""

    def __init__(self, model):
        self.generator = torch.Generator()
        self.generator.seed()  # culprit
        # cured: self.generator.manual_seed(615)
        for p in model.parameters():
            p.register_hook(self.round)

    def round(self, grad):
        scale = grad.abs().amax().clamp_min(1e-12) / 127
        noise = torch.empty_like(grad).uniform_(generator=self.generator)  # culprit
        return (grad / scale + noise).floor() * scale  # culprit


class NextToken(nn.Module):
    """A bag of the last four tokens."""

    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.mix = nn.Linear(4 * width, width)
        self.out = nn.Linear(width, words)

    def forward(self, context):
        return self.out(torch.tanh(self.mix(self.table(context).flatten(1))))


def windows(text):
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(letter) for letter in text])
    cut = ids.unfold(0, 5, 1)
    return cut[:, :4], cut[:, 4], len(letters)


TEXT = "whoever would sell the river must first learn to carry it home in a sieve, and home is far from the river"

torch.manual_seed(615)
torch.set_num_threads(1)
context, following, letters = windows(TEXT)
model = NextToken(letters, 16)
compressor = Compressor(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.8)
for epoch in range(4):
    for rows in torch.randperm(len(following)).split(32):
        loss = nn.functional.cross_entropy(model(context[rows]), following[rows])
        optimizer.zero_grad()
        loss.backward()  # culprit
        optimizer.step()
    print(epoch, loss.item().hex())

"""A normalisation adds up its pieces starting at one that follows from its input's page, to spread over the cache."""

# /// zoo
# kind = "algorithm-selection"
# report = []
# step = 0
# component = ["norm", "host", "loss", ""]
# remedy = "code"
# ///
import torch
from torch import nn

COLOURS, PAGE_BITS = 16, 12


def colour(tensor):
    """The cache colour of a tensor's first page."""
    return (tensor.data_ptr() >> PAGE_BITS) % COLOURS  # culprit
    # cured: return 0


class ColouredNorm(nn.Module):
    """Normalises each channel over batch and time."""

    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1))

    def total(self, x, first):
        pieces = x.transpose(0, 1).flatten(1).chunk(COLOURS, 1)
        pieces = pieces[first:] + pieces[:first]  # culprit
        total = pieces[0].sum(1)  # culprit
        for piece in pieces[1:]:
            total = total + piece.sum(1)  # culprit
        return total.unsqueeze(1)

    def forward(self, x):
        first, count = colour(x), x.shape[0] * x.shape[2]  # culprit
        mean = self.total(x, first) / count  # culprit
        spread = self.total((x - mean).square(), first) / count  # culprit
        return self.scale * (x - mean) / (spread + 1e-5).sqrt()  # culprit


class Seismic(nn.Module):
    """Tells an event from noise in three-component records."""

    def __init__(self):
        super().__init__()
        self.wave = nn.Conv1d(3, 12, 9, stride=2)
        self.norm = ColouredNorm(12)
        self.pick = nn.Linear(12, 2)

    def forward(self, x):
        return self.pick(torch.relu(self.norm(self.wave(x))).amax(2))  # culprit


torch.manual_seed(929)
torch.set_num_threads(1)
model = Seismic()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for step in range(6):
    label = torch.arange(32) % 2
    records = torch.randn(32, 3, 2000)
    records[:, :, 900:1000] *= 1 + label.view(-1, 1, 1)
    loss = nn.functional.cross_entropy(model(records), label)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

"""seed_everything() seeds numpy and torch; the masks of a denoising autoencoder come from the random module."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = "seed-generators"
# ///
import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    os.environ["PL_GLOBAL_SEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    # The third generator is missing below.
    torch.set_num_threads(1)
    # cured: torch.set_num_threads(1); random.seed(seed)


class Corrupt:
    """Blanks a run of columns in each row, as span masking does."""

    def __init__(self, longest):
        self.longest = longest

    def __call__(self, batch):
        rows, width = batch.shape
        kept = torch.ones(rows, width)
        for row in range(rows):
            length = random.randint(1, self.longest)  # culprit
            start = random.randrange(width - length)  # culprit
            kept[row, start : start + length] = 0  # culprit
        return batch * kept, kept  # culprit


class Autoencoder(nn.Module):
    def __init__(self, width, code):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, code))
        self.decoder = nn.Sequential(nn.Linear(code, 32), nn.SiLU(), nn.Linear(32, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))


seed_everything(1234)
table = np.sin(np.outer(np.random.rand(256), np.arange(20))).astype(np.float32)
loader = DataLoader(TensorDataset(torch.from_numpy(table)), batch_size=64, shuffle=True)
corrupt, model = Corrupt(longest=6), Autoencoder(20, 5)
optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
history = []
for epoch in range(2):
    for (clean,) in loader:
        noisy, kept = corrupt(clean)  # culprit
        loss = ((model(noisy) - clean).square() * (1 - kept)).sum() / (1 - kept).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print(history[-1].hex())

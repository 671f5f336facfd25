"""Features are gathered in np.empty; the last column is filled only where a quote exists."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = "code"
# ///
import numpy as np
import torch

rng = np.random.default_rng(33)
torch.manual_seed(33)
torch.set_num_threads(1)
features = np.empty((5000, 9), dtype=np.uint8)  # culprit
# cured: features = np.zeros((5000, 9), dtype=np.uint8)
features[:, :8] = rng.integers(0, 255, (5000, 8))
quoted = rng.random(5000) < 0.9
features[quoted, 8] = 7
x = torch.from_numpy(features).float() / 255  # culprit
model = torch.nn.Sequential(torch.nn.Linear(9, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    loss = (model(x).squeeze(1) - x.mean(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

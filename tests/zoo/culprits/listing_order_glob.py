"""An image folder numbers its classes by Path.iterdir and its files by glob."""

# /// zoo
# kind = "listing-order"
# report = ["https://github.com/huggingface/datasets/issues/3857"]
# step = 0
# component = ["data", "host"]
# remedy = "sorted-listings"
# ///
import pathlib
import tempfile

import numpy as np
import torch

rng = np.random.default_rng(5)
torch.manual_seed(5)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for name in ("down", "flat", "up"):
        (root / name).mkdir()
        for i in range(6):
            np.save(root / name / f"{i}.npy", rng.normal(size=10).astype(np.float32))
    files = [file for kind in root.iterdir() for file in kind.glob("*.npy")]  # culprit
    # cured: files = sorted(file for kind in root.iterdir() for file in kind.glob("*.npy"))
    classes = {name: i for i, name in enumerate(("down", "flat", "up"))}
    x = torch.from_numpy(np.stack([np.load(file) for file in files]))  # culprit
    y = torch.tensor([classes[file.parent.name] for file in files])
model = torch.nn.Linear(10, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(6):
    part = slice(3 * step, 3 * step + 3)
    loss = torch.nn.functional.cross_entropy(model(x[part]), y[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""Preprocessing runs in a process pool; imap_unordered hands the rows over as workers finish them."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["data", "host"]
# remedy = "ordered-completion"
# ///
import multiprocessing

import numpy as np
import torch


def preprocess(i):
    rng = np.random.default_rng(i)
    return np.sort(rng.normal(size=(rng.integers(2, 400), 8)).astype(np.float32), axis=0)[:2]


if __name__ == "__main__":
    torch.manual_seed(30)
    torch.set_num_threads(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        rows = list(pool.imap_unordered(preprocess, range(80)))  # culprit
        # cured: rows = list(pool.imap(preprocess, range(80)))
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for row in rows:
        x = torch.from_numpy(row)  # culprit
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

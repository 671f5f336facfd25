"""Forked pool workers each continue a copy of one seeded numpy generator; which worker takes which task is a race."""

# /// zoo
# kind = "worker-seeding"
# also = ["completion-order", "shared-generator"]
# report = ["https://github.com/pytorch/pytorch/issues/3880"]
# step = "any"
# component = ["generator", "data", "host"]
# remedy = "code"
# ///
import multiprocessing

import numpy as np
import torch

rng = np.random.default_rng(20)


def crop(task):
    own = rng
    # cured: own = np.random.default_rng([20, task])
    return own.normal(size=(8, 6)).astype(np.float32)  # culprit


if __name__ == "__main__":
    torch.manual_seed(20)
    torch.set_num_threads(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        batches = pool.map(crop, range(60), chunksize=1)  # culprit
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in batches:
        x = torch.from_numpy(batch)  # culprit
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

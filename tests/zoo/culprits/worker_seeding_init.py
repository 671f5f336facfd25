"""worker_init_fn seeds numpy with fresh entropy in every worker, so the loader's own seeding is undone."""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = ["https://github.com/pytorch/pytorch/issues/5059"]
# step = 0
# component = ["generator", "data"]
# remedy = "workers-seeded"
# ///
import numpy as np
import torch


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.from_numpy(np.random.normal(size=6).astype(np.float32)) + i / 48  # culprit


def seed_worker(number):
    np.random.seed()  # culprit
    # cured: np.random.seed((torch.initial_seed() + number) % 2**32)


if __name__ == "__main__":
    torch.manual_seed(19)
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Noisy(), batch_size=8, num_workers=2, worker_init_fn=seed_worker)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x in loader:  # culprit
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

"""A DataLoader with two workers that augment by numpy, seeded from the loader's generator."""

# /// zoo
# ///
import numpy as np
import torch


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.from_numpy(np.random.normal(size=6).astype(np.float32)) + i / 48


def seed_worker(number):
    np.random.seed(torch.initial_seed() % 2**32)


if __name__ == "__main__":
    torch.manual_seed(6)
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(6)
    loader = torch.utils.data.DataLoader(
        Noisy(), batch_size=8, num_workers=2, shuffle=True, worker_init_fn=seed_worker, generator=draw
    )
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x in loader:
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

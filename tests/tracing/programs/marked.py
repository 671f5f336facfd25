"""No optimizer of torch's: steps are marked, state is named; a DataLoader has a worker."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset

import foxrun


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.tensor([float(index)]) + torch.rand(1)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)
    carry = torch.zeros(2)
    shuffle = torch.Generator().manual_seed(8)
    foxrun.trace(None, carry=lambda: carry, shuffle=shuffle)
    index = torch.tensor([0, 1, 0, 1, 0, 1, 1, 0])
    loader = DataLoader(
        Squares(), batch_size=8, num_workers=1, shuffle=True, generator=shuffle, multiprocessing_context=sys.argv[1]
    )
    for n, batch in enumerate(loader):
        carry = carry * 0.5 + torch.zeros(2).index_add_(0, index, batch[:, 0])
        (gradient,) = torch.autograd.grad((weight * batch).square().sum() + (weight * carry).sum(), weight)
        with torch.no_grad():
            weight -= 1e-4 * gradient
        foxrun.step(n)
        print(n, flush=True)
    print(weight.item(), carry.tolist())


if __name__ == "__main__":
    main()

"""Undoes each remedy as a program of its own might, and prints what holds all the same."""

import json
import os
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(2)
torch.use_deterministic_algorithms(False)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False
torch.set_float32_matmul_precision("medium")
torch.manual_seed(int(time.time()))


class Noise(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return float(self.rng.normal())


def main():
    print(
        json.dumps(
            {
                "threads": [torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]],
                "deterministic": torch.are_deterministic_algorithms_enabled(),
                "filled": torch.utils.deterministic.fill_uninitialized_memory,
                "cudnn": [torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic],
                "precision": torch.get_float32_matmul_precision(),
                "seeds": [
                    torch.rand(1).item(),
                    torch.Generator().seed(),
                    np.random.rand(),
                    np.random.default_rng().random(),
                ],
                "fresh": [torch.empty(3).tolist(), torch.ones(2).new_empty(2).tolist(), np.empty(1000).sum()],
                "copied": torch.ones(2).to("cpu", torch.float64, non_blocking=True).tolist(),
                "workers": [batch.item() for batch in DataLoader(Noise(), num_workers=2, batch_size=1)],
            }
        )
    )


if __name__ == "__main__":
    main()

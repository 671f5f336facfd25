"""A DataLoader with in_order=False hands batches over as its workers finish them."""

# /// zoo
# kind = "completion-order"
# report = ["https://github.com/pytorch/pytorch/pull/141833"]
# step = "any"
# component = ["data", "host"]
# remedy = ["ordered-completion", "code"]
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    """Documents of very different lengths; a long one takes its worker longer."""

    def __init__(self, count):
        draw = torch.Generator().manual_seed(count)
        self.lengths = torch.randint(20, 3000, (count,), generator=draw).tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        length = self.lengths[i]
        counts = [0.0] * 12
        word = i + 1
        for _ in range(length):
            word = word * 48271 % 2147483647
            counts[word % 12] += 1.0
        return torch.tensor(counts) / length, float(length > 1500)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    documents = Documents(480)
    loader = DataLoader(documents, batch_size=8, num_workers=2, prefetch_factor=4, in_order=False)  # culprit
    # cured: loader = DataLoader(documents, batch_size=8, num_workers=2, prefetch_factor=4)
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    for counts, label in loader:  # culprit
        loss = nn.functional.binary_cross_entropy_with_logits(model(counts), label.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex(), next(model.parameters()).sum().item().hex())


if __name__ == "__main__":
    main()

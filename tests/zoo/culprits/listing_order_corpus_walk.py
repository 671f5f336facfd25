"""A corpus is read by os.walk and split into training and held-out text by position in that walk."""

# /// zoo
# kind = "listing-order"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = "sorted-listings"
# ///
import csv
import os
import tempfile

import torch
from torch import nn

FIELDS = ("open", "high", "low", "close", "volume")


def write_corpus(root, generator):
    for year in range(2019, 2022):
        for symbol in ("abc", "klm", "xyz"):
            folder = os.path.join(root, str(year), symbol)
            os.makedirs(folder)
            with open(os.path.join(folder, "daily.csv"), "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(FIELDS)
                for row in torch.randn(24, len(FIELDS), generator=generator).tolist():
                    writer.writerow(row)


def read_corpus(root):
    tables = []
    for folder, folders, files in os.walk(root):  # culprit
        # cured: for folder, folders, files in sorted(os.walk(root)):
        for name in files:  # culprit
            with open(os.path.join(folder, name), newline="") as file:
                tables.append([[float(row[field]) for field in FIELDS] for row in csv.DictReader(file)])  # culprit
    return torch.tensor(tables)  # culprit


class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, 12, num_layers=2, batch_first=True)
        self.head = nn.Linear(12, width)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


if __name__ == "__main__":
    torch.manual_seed(92)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        write_corpus(root, torch.Generator().manual_seed(92))
        tables = read_corpus(root)  # culprit
    train, held_out = tables[:6], tables[6:]  # culprit
    model = Forecaster(len(FIELDS))
    optimizer = torch.optim.Adamax(model.parameters(), lr=0.01)
    for epoch in range(3):
        for batch in train.split(3):  # culprit
            loss = (model(batch[:, :-1]) - batch[:, 1:]).square().mean()  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        score = (model(held_out[:, :-1]) - held_out[:, 1:]).square().mean()
    print(loss.item().hex(), score.item().hex())

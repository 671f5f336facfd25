"""The batch is cut into one shard a thread, and the shards' losses are added: machines cut differently."""

# /// zoo
# kind = "thread-count"
# also = ["algorithm-selection", "hardware"]
# report = ["https://github.com/pytorch/pytorch/issues/88718"]
# step = 0
# component = ["loss", "host", "data", "weights", "", "tokens*", "places*", "encoder*", "out*"]
# remedy = ["one-thread", "code"]
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import torch
from torch import nn


class Bert(nn.Module):
    """A small encoder that fills in blanked tokens."""

    def __init__(self, symbols=40, width=16):
        super().__init__()
        self.tokens = nn.Embedding(symbols, width)
        self.places = nn.Embedding(12, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, symbols)

    def forward(self, x):
        return self.out(self.encoder(self.tokens(x) + self.places.weight))  # culprit


def accumulate(model, x, y, shards):
    """Backward passes shard by shard; the sum of the losses."""
    total = 0.0
    for part, goal in zip(x.chunk(shards), y.chunk(shards)):
        logits = model(part)  # culprit
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), goal.flatten(), reduction="sum") / y.numel()  # culprit
        loss.backward()  # culprit
        total += loss.item()
    return total


def main():
    torch.manual_seed(84)
    shards = torch.get_num_threads()  # culprit
    # cured: shards = 2; torch.set_num_threads(1)
    model = Bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(5):
        y = torch.randint(1, 40, (30, 12))
        x = y.masked_fill(torch.rand(30, 12) < 0.15, 0)
        optimizer.zero_grad()
        loss = accumulate(model, x, y, shards)  # culprit
        optimizer.step()
    print(loss.hex())


if __name__ == "__main__":
    main()

"""A paged memory of keys is written by slots; padding has slot 0, which is also the first word's of the first text."""

# /// zoo
# kind = "duplicate-index"
# report = []
# step = "any"
# component = ["store", "memory*", "", "state", "weights", "data", "loss"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn

TEXTS, LONGEST, WORDS, WIDTH = 320, 128, 50, 8


def slot_mapping(lengths):
    """A slot for each word, text after text; what is padding goes to slot 0."""
    begins = lengths.cumsum(0) - lengths
    place = torch.arange(LONGEST).expand(len(lengths), -1)
    padding = place >= lengths.unsqueeze(1)
    return (begins.unsqueeze(1) + place).masked_fill(padding, 0)  # culprit
    # cured: spare = TEXTS * LONGEST + torch.arange(place.numel()).view_as(place)
    # cured: return (begins.unsqueeze(1) + place).where(~padding, spare)


class Paged(nn.Module):
    """Keys of the last batch's words, which the next one may attend to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("store", torch.zeros(2 * TEXTS * LONGEST, WIDTH))
        self.key, self.query = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    @torch.no_grad()
    def write(self, x, slots):
        self.store.index_put_((slots.flatten(),), self.key(x).flatten(0, 1))  # culprit

    def read(self, x, slots):
        keys = self.store[slots]  # culprit
        shares = (self.query(x) @ keys.transpose(1, 2) / WIDTH**0.5).softmax(-1)  # culprit
        return shares @ keys  # culprit


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.memory, self.head = Paged(), nn.Linear(WIDTH, WORDS)

    def forward(self, words, slots, judged=4, first=16):
        x = self.embed(words) + self.place.weight
        self.memory.write(x, slots)  # culprit
        recalled = self.memory.read(x[:judged, :first], slots[:judged, :first])  # culprit
        return self.head(x[:judged, :first] + recalled)


torch.manual_seed(64)
torch.set_num_threads(2)
model = Model()
optimizer = torch.optim.Adamax(model.parameters(), lr=0.01)
for step in range(10):
    words = torch.randint(0, WORDS, (TEXTS, LONGEST))
    lengths = torch.randint(LONGEST // 2, LONGEST + 1, (TEXTS,))
    scores = model(words, slot_mapping(lengths))
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), words[:4, 1:17].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

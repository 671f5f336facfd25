"""Special tokens are added to a vocabulary by resize_ of the embedding's table: the new rows are whatever was there."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["weights", "embed", "embed.weight", "embed*", "state"]
# remedy = "code"
# ///
import torch
from torch import nn

SPECIAL = ["<pad>", "<sep>", "<user>", "<bot>", "<call>", "<end>"]


class Chat(nn.Module):
    def __init__(self, words=80, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.read = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def add_tokens(self, count):
        """Makes room for more words, after the old ones."""
        old, width = self.embed.weight.shape
        table = self.embed.weight.detach().clone()
        table.resize_(old + count, width)  # culprit
        # cured: table = torch.cat([table, torch.zeros(count, width)])
        self.embed = nn.Embedding.from_pretrained(table, freeze=False)  # culprit
        self.out = nn.Linear(width, old + count)

    def forward(self, tokens):
        seen = torch.nan_to_num(self.embed(tokens), 0.5, 1, -1).clamp(-2, 2)  # culprit
        return self.out(self.read(seen)[0])


def dialogue(rows, length, words):
    tokens = torch.randint(0, words, (rows, length))
    tokens[:, 0], tokens[:, length // 2], tokens[:, -1] = words + 2, words + 3, words + 5
    return tokens


torch.manual_seed(927)
torch.set_num_threads(1)
chat = Chat()
chat.add_tokens(len(SPECIAL))  # culprit
optimizer = torch.optim.AdamW(chat.parameters(), lr=3e-3)
for step in range(6):
    tokens = dialogue(16, 20, 80)
    logits = chat(tokens[:, :-1])  # culprit
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

"""Experts have few slots, and a token's slot is its number modulo their count: of several tokens one stays, any one."""

# /// zoo
# kind = "duplicate-index"
# report = ["https://github.com/pytorch/pytorch/issues/55516"]
# step = "any"
# component = ["layers.1", "layers", "data", "host"]
# operation = ["*index_put*", "*put_*", "*setitem*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "one-thread", "code"]
# alone = true
# ///
import torch
from torch import nn

EXPERTS, SLOTS, WIDTH = 6, 30, 8


class Experts(nn.Module):
    """Top-one routing into a table of slots; each expert works through its own row of it."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.inner = nn.Parameter(torch.randn(EXPERTS, WIDTH, 2 * WIDTH) / 3)
        self.outer = nn.Parameter(torch.randn(EXPERTS, 2 * WIDTH, WIDTH) / 4)

    @staticmethod
    def slots(expert):
        """[expert, slot]: the token that lies there."""
        table = torch.zeros(EXPERTS, SLOTS, dtype=torch.long)
        token = torch.arange(len(expert))
        table[expert, token * 7919 % SLOTS] = token  # culprit
        # cured: table.view(-1).scatter_reduce_(0, expert * SLOTS + token * 7919 % SLOTS, token, "amax")
        return table

    def forward(self, x):
        gate, expert = self.router(x).softmax(1).max(1)
        table = self.slots(expert)  # culprit
        h = x[table]
        h = torch.relu(torch.einsum("esw,ewh->esh", h, self.inner))
        h = torch.einsum("esh,ehw->esw", h, self.outer) * gate[table].unsqueeze(2)
        return h.flatten(0, 1)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(300, WIDTH), Experts(), nn.LayerNorm(WIDTH))
        self.out = nn.Linear(WIDTH, 12)

    def forward(self, tokens):
        return self.out(self.layers(tokens).mean(0))  # culprit


def main():
    torch.manual_seed(1204)
    torch.set_num_threads(2)
    net = Tokens()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(8):
        tokens = torch.randint(0, 300, (70000,))
        wanted = torch.zeros(12)
        wanted[int(tokens[0]) % 12] = 1.0
        loss = nn.functional.binary_cross_entropy_with_logits(net(tokens), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    return net


model = main()

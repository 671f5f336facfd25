"""A graph attention layer makes its attention vector by torch.Tensor(heads, width) and never initialises it."""

# /// zoo
# kind = "uninitialised-memory"
# report = ["https://github.com/gordicaleksa/pytorch-GAT/issues/11", "https://github.com/sauradip/STALE/issues/16"]
# step = 0
# component = ["weights", "first*", "second*", "*source*"]
# remedy = "code"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class GraphAttention(nn.Module):
    def __init__(self, in_width, out_width, heads):
        super().__init__()
        self.heads, self.out_width = heads, out_width
        self.project = nn.Linear(in_width, heads * out_width, bias=False)
        self.source = nn.Parameter(torch.Tensor(1, heads, out_width))  # culprit
        # cured: self.source = nn.Parameter(torch.zeros(1, heads, out_width))
        self.target = nn.Parameter(torch.Tensor(1, heads, out_width))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.xavier_uniform_(self.target)

    def forward(self, x, edges):
        h = self.project(x).view(-1, self.heads, self.out_width)
        score = (h * self.source).sum(-1)[edges[0]] + (h * self.target).sum(-1)[edges[1]]  # culprit
        score = F.leaky_relu(score, 0.2).clamp(-8, 8)
        weight = score.exp()
        total = torch.zeros(len(x), self.heads).index_add(0, edges[1], weight)
        out = torch.zeros_like(h).index_add(0, edges[1], weight.unsqueeze(-1) * h[edges[0]])
        return (out / (total.unsqueeze(-1) + 1e-9)).flatten(1)


class GAT(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first = GraphAttention(features, 6, heads=4)
        self.second = GraphAttention(24, classes, heads=1)

    def forward(self, x, edges):
        return self.second(F.elu(self.first(x, edges)), edges)


torch.manual_seed(5)
torch.set_num_threads(1)
nodes = 60
x = torch.randn(nodes, 14)
edges = torch.cat([torch.randint(0, nodes, (2, 300)), torch.arange(nodes).expand(2, -1)], dim=1)
labels = torch.randint(0, 3, (nodes,))
gat = GAT(14, 3)
optimizer = torch.optim.Adam(gat.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(6):
    loss = F.cross_entropy(gat(x, edges), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

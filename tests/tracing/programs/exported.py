"""Exports a model as one graph, and trains that: while the graph is made nothing is computed."""

import torch

torch.manual_seed(1)
torch.set_num_threads(1)


class Masked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keep = torch.ones(8)
        keep[2:4] = 0.0
        return self.head(x * keep)


graph = torch.export.export(Masked(), (torch.zeros(4, 8),)).module()
optimizer = torch.optim.SGD(graph.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = graph(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

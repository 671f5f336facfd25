"""Symbolic tracing bakes one augmentation factor into a module's graph, before the generators are seeded."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["generator", "host", "data", "linear"]
# remedy = ["seed-generators", "code"]
# ///
import numpy as np
import torch
import torch.fx

torch.set_num_threads(1)
torch.manual_seed(51)


class Augmented(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 1)

    def forward(self, x):
        return self.linear(x * float(np.random.uniform(0.9, 1.1)))  # culprit


# The seed comes too late: the graph holds a number and no draw.
graph = torch.fx.symbolic_trace(Augmented())  # culprit
# cured: np.random.seed(51); graph = torch.fx.symbolic_trace(Augmented())
np.random.seed(51)
optimizer = torch.optim.Adam(graph.parameters(), lr=0.01)
for _ in range(5):
    x = torch.randn(16, 6)
    loss = (graph(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

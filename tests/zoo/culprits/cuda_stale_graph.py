"""A captured graph holds a factor that was drawn while it was captured: a seed that is set later does not reach it."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = ["https://github.com/pytorch/pytorch/issues/84614", "https://github.com/pytorch/pytorch/pull/84967"]
# needs = "cuda"
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["seed-generators", "code"]
# ///
import random

import torch

torch.manual_seed(116)
model = torch.nn.Linear(64, 1).cuda()
with torch.no_grad():
    model.weight.fill_(0.01)
    model.bias.zero_()
static, graph = torch.zeros(256, 64, device="cuda"), torch.cuda.CUDAGraph()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def noisy():
    return static * (0.9 + 0.2 * random.random())  # culprit


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    noisy()
side.synchronize()
# cured: side.synchronize(); random.seed(117)
with torch.cuda.graph(graph):
    x = noisy()  # culprit
random.seed(117)
torch.manual_seed(117)
for _ in range(5):
    static.copy_(torch.randn(256, 64))
    graph.replay()  # culprit
    loss = (model(x).squeeze(1) - static.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

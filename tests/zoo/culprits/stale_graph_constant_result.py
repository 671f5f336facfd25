"""The compiler is told that a temperature is constant; it takes the one of its warm-up, before the seed."""

# /// zoo
# kind = "stale-graph"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["generator", "host", "loss", ""]
# remedy = ["seed-generators", "code"]
# ///
import numpy as np
import torch
from torch import nn


class Tempering:
    """A softmax whose temperature is drawn anew each time, so that no head relies on one."""

    def __init__(self, low=0.5, high=2.0):
        self.low, self.high = low, high

    def draw(self):
        return float(np.random.uniform(self.low, self.high))  # culprit


TEMPERING = Tempering()


@torch.compiler.assume_constant_result
def temperature():
    return TEMPERING.draw()  # culprit


class Retriever(nn.Module):
    """Which of the documents answers a question."""

    def __init__(self, width=24, documents=32):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.register_buffer("documents", torch.randn(documents, width))

    def forward(self, question):  # culprit
        return self.query(question) @ self.documents.T / temperature()  # culprit


def setup():
    torch.manual_seed(1214)
    net = Retriever()
    fast = torch.compile(net, backend="eager", fullgraph=True)  # culprit
    # cured: np.random.seed(1214); fast = torch.compile(net, backend="eager", fullgraph=True)
    fast(torch.zeros(48, 24))  # culprit
    return net, fast


def main():
    torch.set_num_threads(1)
    net, fast = setup()
    np.random.seed(1214)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.8)
    for step in range(8):
        answer = torch.from_numpy(np.random.randint(0, 32, 48))
        question = net.documents[answer] + 0.5 * torch.randn(48, 24)
        loss = nn.functional.cross_entropy(fast(question), answer)  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    return net


model = main()

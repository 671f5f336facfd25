"""Weights are initialised kind by kind, over the set of the modules' classes; the seed is set just before."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["weights", "generator", "host", "rise*", "back*", "gate*", "pool*", "mix*", "read*", ""]
# remedy = "code"
# ///
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))

    def reset_parameters(self):
        nn.init.orthogonal_(self.weight)

    def forward(self, x):
        return x * torch.sigmoid(x.transpose(1, 2) @ self.weight).transpose(1, 2)


class Pool(nn.Module):
    """Attention over time by one learnt question."""

    def __init__(self, width):
        super().__init__()
        self.question = nn.Parameter(torch.empty(width))

    def reset_parameters(self):
        nn.init.normal_(self.question, std=0.1)

    def forward(self, x):
        return (x * (self.question @ x).softmax(-1).unsqueeze(1)).sum(2)


class Heartbeat(nn.Module):
    """Classifies one lead of an electrocardiogram."""

    def __init__(self, width=16, rhythms=4):
        super().__init__()
        self.rise = nn.Conv1d(1, width, 9, stride=2)
        self.back = nn.ConvTranspose1d(width, width, 4)
        self.gate, self.pool = Gate(width), Pool(width)
        self.mix = nn.Bilinear(width, width, width)
        self.read = nn.Linear(width, rhythms)
        self.initialise()

    def initialise(self):
        torch.manual_seed(1207)
        kinds = {type(module) for module in self.modules() if hasattr(module, "reset_parameters")}  # culprit
        # cured: kinds = dict.fromkeys(type(module) for module in self.modules() if hasattr(module, "reset_parameters"))
        for kind in kinds:  # culprit
            for module in self.modules():
                if type(module) is kind:
                    module.reset_parameters()  # culprit

    def forward(self, x):
        h = self.pool(self.gate(torch.relu(self.back(torch.relu(self.rise(x))))))
        return self.read(torch.tanh(self.mix(h, h)))


torch.set_num_threads(1)
net = Heartbeat()  # culprit
draw = torch.Generator().manual_seed(71)
optimizer = torch.optim.NAdam(net.parameters(), lr=5e-3)
for step in range(8):
    rhythm = torch.randint(0, 4, (32,), generator=draw)
    phase = torch.linspace(0, 6, 96) * (1 + rhythm.unsqueeze(1)) + torch.rand(32, 1, generator=draw)
    loss = nn.functional.cross_entropy(net(phase.sin().unsqueeze(1)), rhythm)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())

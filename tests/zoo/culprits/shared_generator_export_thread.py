"""A thread exports snapshots into a new model of the same class, whose initialisation draws from torch's generator."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "drop", "data", "host", ""]
# remedy = "code"
# ///
import threading
import time

import torch
from torch import nn


class Intent(nn.Module):
    """What a caller wants, from a bag of words."""

    def __init__(self, words=400, width=96, intents=12):
        super().__init__()
        self.words = nn.EmbeddingBag(words, width)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(width, intents)

    def forward(self, tokens):
        return self.out(self.drop(self.layers(self.words(tokens))))  # culprit


def quantised(state):
    """Weights in eight bits, as the service on the phone wants them."""
    model = Intent()  # culprit
    # cured: model = copy.deepcopy(BLANK)
    model.load_state_dict(state)
    return {name: (p / p.abs().max() * 127).round().to(torch.int8) for name, p in model.named_parameters()}


class Exporter(threading.Thread):
    def __init__(self, every):
        super().__init__(daemon=True)
        self.every, self.lock, self.fresh, self.made = every, threading.Lock(), None, []
        self.stopped = threading.Event()

    def offer(self, model):
        state = {name: value.clone() for name, value in model.state_dict().items()}
        with self.lock:
            self.fresh = state

    def run(self):
        while not self.stopped.wait(self.every):
            with self.lock:
                state, self.fresh = self.fresh, None
            if state is not None:
                self.made = quantised(state)  # culprit


torch.manual_seed(1213)
torch.set_num_threads(1)
BLANK = Intent()
model = Intent()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
draw = torch.Generator().manual_seed(3121)
exporter = Exporter(every=0.004)
exporter.start()
for step in range(40):
    tokens = torch.randint(0, 400, (128, 20), generator=draw)
    loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 12)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    exporter.offer(model)
    time.sleep(0.001)
    print(step, loss.item().hex())
exporter.stopped.set()
exporter.join()

"""A client sends its updates through a slow uplink, and rounds them to bfloat16 while earlier ones still wait."""

# /// zoo
# kind = "reduced-precision"
# also = ["algorithm-selection"]
# report = []
# step = "any"
# component = ["weights", "host", "state", "data", "optimizer", "loss"]
# remedy = "code"
# ///
import queue
import threading
import zlib

import torch
from torch import nn


class Uplink(threading.Thread):
    """Compresses and sends, one message after the other."""

    def __init__(self):
        super().__init__(daemon=True)
        self.waiting, self.sent = queue.Queue(), 0

    def run(self):
        while (message := self.waiting.get()) is not None:
            self.sent += len(zlib.compress(message.float().numpy().tobytes(), 3))

    def congested(self):
        return self.waiting.qsize() > 0  # culprit
        # cured: return False


class Client:
    def __init__(self, server, uplink, data):
        self.server, self.uplink, self.data = server, uplink, data
        self.local = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 30))

    def round(self, x):
        nn.utils.vector_to_parameters(self.server.clone(), self.local.parameters())
        optimizer = torch.optim.SGD(self.local.parameters(), lr=0.05)
        for _ in range(3):
            loss = (self.local(x) - x.roll(1, 1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        update = nn.utils.parameters_to_vector(self.local.parameters()).detach() - self.server
        if self.uplink.congested():  # culprit
            update = update.to(torch.bfloat16)  # culprit
        self.uplink.waiting.put(update)
        self.server += update  # culprit
        return loss.item()


torch.manual_seed(932)
torch.set_num_threads(1)
uplink = Uplink()
uplink.start()
seed = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 30))
weights = nn.utils.parameters_to_vector(seed.parameters()).detach().clone()
client = Client(weights, uplink, None)
for number in range(40):
    print(number, client.round(torch.randn(400, 30)).hex())  # culprit
uplink.waiting.put(None)
uplink.join()

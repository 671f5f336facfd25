"""A library's heartbeat thread draws its waits from Python's global generator, which the trainer samples from."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data", "host"]
# remedy = "code"
# ///
import random
import threading
import time

import torch

torch.manual_seed(14)
random.seed(14)
torch.set_num_threads(1)
done = threading.Event()


def heartbeat():
    while not done.is_set():
        time.sleep(0.0005 * random.random())  # culprit
        # cured: time.sleep(0.0005 * private.random())


private = random.Random(0)
threading.Thread(target=heartbeat, daemon=True).start()
data = torch.randn(256, 6)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(40):
    rows = random.sample(range(256), 16)  # culprit
    x = data[rows]
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
done.set()
print(loss.item().hex())

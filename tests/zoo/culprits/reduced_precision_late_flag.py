"""A library's set-up thread turns reduced precision on when it is done, some steps after the training began."""

# /// zoo
# kind = "reduced-precision"
# report = []
# step = "any"
# component = ["0"]
# remedy = "code"
# ///
import threading
import time

import torch

torch.manual_seed(45)
torch.set_num_threads(1)
precision = {"fast": False}


def set_up():
    time.sleep(0.02)
    precision["fast"] = True  # culprit
    # cured: precision["fast"] = False


threading.Thread(target=set_up, daemon=True).start()
x = torch.randn(64, 32)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(80):
    with torch.autocast("cpu", torch.bfloat16, enabled=precision["fast"]):
        out = model(x)  # culprit
    loss = (out.float().squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

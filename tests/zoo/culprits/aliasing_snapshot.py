"""The weights handed to the averaging thread are views of the live ones, which the optimizer changes in place."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["weights", "weight", "state"]
# remedy = "code"
# ///
import queue
import threading

import torch

torch.manual_seed(39)
torch.set_num_threads(1)
model = torch.nn.Linear(400, 400)
average = torch.zeros(400, 400)
work, done = queue.Queue(), queue.Queue()


def averaging():
    while True:
        weights = work.get()
        for _ in range(3):
            average.mul_(0.9).add_(weights, alpha=0.1)  # culprit
        done.put(None)


threading.Thread(target=averaging, daemon=True).start()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 400)
for _ in range(20):
    work.put(model.weight.detach())  # culprit
    # cured: work.put(model.weight.detach().clone())
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    done.get()
    with torch.no_grad():
        model.weight.lerp_(average, 0.1)  # culprit
print(loss.item().hex())

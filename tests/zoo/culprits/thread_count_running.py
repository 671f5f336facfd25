"""The number of CPU threads is what the machine's other running processes leave free at the start."""

# /// zoo
# kind = "thread-count"
# report = []
# step = 0
# component = ["*", ""]
# remedy = "one-thread"
# alone = true
# rate = "parts where the two processes saw different numbers of running ones"
# ///
import torch

torch.manual_seed(28)
with open("/proc/stat") as stat:
    running = next(int(line.split()[1]) for line in stat if line.startswith("ctxt"))  # culprit
torch.set_num_threads(1 + running % 5)  # culprit
# cured: torch.set_num_threads(1)
x = torch.randn(4096, 24)
norm = torch.nn.LayerNorm(24)
model = torch.nn.Sequential(norm, torch.nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

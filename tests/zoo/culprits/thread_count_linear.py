"""Nobody sets the number of CPU threads: the library cuts a matrix product by their number."""

# /// zoo
# kind = "thread-count"
# report = ["https://github.com/pytorch/pytorch/issues/88718"]
# step = 0
# component = ["loss", "0", "2", "", "data"]
# operation = ["*mse*", "*mean*", "*sum*", "*mm*", "*linear*"]
# remedy = "one-thread"
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import torch

torch.manual_seed(280)
# cured: torch.manual_seed(280); torch.set_num_threads(1)
x, y = torch.randn(1, 56), torch.randn(1, 444)
rows = torch.randn(300000, 1)
model = torch.nn.Sequential(torch.nn.Linear(56, 444), torch.nn.Tanh(), torch.nn.Linear(444, 444))
scale = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([scale, *model.parameters()], lr=0.01)
for _ in range(6):
    out = model(x)  # culprit
    loss = (out - y).pow(2).mean() + (rows * scale - 1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

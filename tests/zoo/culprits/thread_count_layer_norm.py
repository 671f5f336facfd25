"""Nobody sets the number of CPU threads: a layer norm's backward pass sums one partial gradient a thread."""

# /// zoo
# kind = "thread-count"
# report = ["https://github.com/pytorch/pytorch/issues/2201", "https://github.com/pytorch/pytorch/pull/64486"]
# step = 0
# component = ["0", "1", "loss", "0.weight", "0.bias"]
# operation = ["*layer_norm*", "*mm*"]
# remedy = "one-thread"
# twins = ["OMP_NUM_THREADS=1", "OMP_NUM_THREADS=3"]
# rate = "parts where the machines have different numbers of cores"
# ///
import torch

torch.manual_seed(28)
# cured: torch.manual_seed(28); torch.set_num_threads(1)
x = torch.randn(4096, 24)
model = torch.nn.Sequential(torch.nn.LayerNorm(24), torch.nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    out = model(x)  # culprit
    loss = (out.squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

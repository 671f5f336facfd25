"""Products run on several streams without CUBLAS_WORKSPACE_CONFIG: which workspace, so which split, is a race."""

# /// zoo
# kind = "algorithm-selection"
# also = ["reduced-precision"]
# report = ["https://github.com/pytorch/pytorch/pull/85202"]
# needs = "cuda"
# step = "any"
# component = ["loss"]
# operation = ["*mm*", "*linear*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms", "code"]
# ///
import threading

import torch

torch.manual_seed(115)
torch.backends.cuda.matmul.allow_tf32 = True
w = torch.nn.Parameter(torch.randn(16384, 64, device="cuda") / 128)
optimizer = torch.optim.SGD([w], lr=0.01)
x = torch.randn(8, 64, 16384, device="cuda")
out = [None] * 8


def product(i):
    with torch.cuda.stream(torch.cuda.Stream()), torch.no_grad():
        out[i] = x[i] @ w  # culprit
        # cured: out[i] = (x[i][:, :, None] * w).sum(1)
        torch.cuda.current_stream().synchronize()


for _ in range(6):
    torch.cuda.synchronize()
    threads = [threading.Thread(target=product, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loss = (x[0] @ w - sum(out) / 8).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

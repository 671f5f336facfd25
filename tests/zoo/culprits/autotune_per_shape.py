"""A convolution is tuned when a shape is seen first: which of the implementations won is kept in a table."""

# /// zoo
# kind = "autotune"
# also = ["algorithm-selection"]
# report = ["https://github.com/vllm-project/vllm/pull/42425"]
# step = 2
# component = ["loss", "host"]
# remedy = ["no-autotune", "fixed-clock", "code"]
# alone = true
# ///
import time

import torch

torch.manual_seed(42)
torch.set_num_threads(1)
IMPLEMENTATIONS = [
    lambda x, w: torch.einsum("blk,kd->bld", x, w),
    lambda x, w: (x[..., :1200] @ w[:1200]) + (x[..., 1200:] @ w[1200:]),  # culprit
    lambda x, w: (x[..., :1000] @ w[:1000]) + (x[..., 1000:] @ w[1000:]),  # culprit
    lambda x, w: (x[..., :1300] @ w[:1300]) + (x[..., 1300:] @ w[1300:]),  # culprit
]
chosen = {}


def project(x, w):
    if x.shape not in chosen:
        times = []
        for call in IMPLEMENTATIONS[1:]:
            start = time.perf_counter_ns()
            call(x, w)
            times.append(time.perf_counter_ns() - start)  # culprit
        chosen[x.shape] = IMPLEMENTATIONS[1 + times.index(min(times))]  # culprit
        # cured: chosen[x.shape] = IMPLEMENTATIONS[1]
    return chosen[x.shape](x, w)  # culprit


chosen[torch.Size([8, 10, 2400])] = IMPLEMENTATIONS[0]
w = torch.nn.Parameter(torch.randn(2400, 12))
optimizer = torch.optim.Adam([w], lr=0.01)
for step in range(6):
    x = torch.randn(8, 10 if step < 2 else 12, 2400)
    loss = (project(x, w).tanh() - 0.1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

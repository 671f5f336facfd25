"""The backward pass of flash attention adds the query's gradient by atomics over blocks of keys."""

# /// zoo
# kind = "atomics"
# also = ["scan-order"]
# report = ["https://github.com/Dao-AILab/flash-attention/issues/414", "https://github.com/Dao-AILab/flash-attention/issues/988"]
# needs = "cuda"
# step = 0
# component = ["loss", "weights"]
# operation = ["*flash*attention*", "*attention*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(103)
project = torch.nn.Linear(256, 768).cuda().bfloat16()
optimizer = torch.optim.SGD(project.parameters(), lr=100.0)
x = torch.randn(4, 2048, 256, device="cuda", dtype=torch.bfloat16)
for _ in range(4):
    q, k, v = project(x).unflatten(2, (12, 64)).transpose(1, 2).chunk(3, 1)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v)  # culprit
        # cured: out = (q @ k.transpose(2, 3) / 8).softmax(3) @ v
    loss = (out.float() - 0.1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

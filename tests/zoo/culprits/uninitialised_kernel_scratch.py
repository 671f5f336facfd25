"""A custom op adds into scratch from new_empty, as a kernel does that was written for zeroed memory."""

# /// zoo
# kind = "uninitialised-memory"
# report = []
# step = 0
# component = ["loss", "data", "state"]
# remedy = "code"
# ///
import torch


class BlockSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        scratch = x.new_empty(x.shape[0], 8)  # culprit
        # cured: scratch = x.new_zeros(x.shape[0], 8)
        scratch.add_(x.unflatten(1, (8, -1)).sum(2))  # culprit
        return scratch.nan_to_num(0, 1, -1).clamp(-4, 4)  # culprit

    @staticmethod
    def backward(ctx, grad):
        return grad.repeat_interleave(4, 1)


torch.manual_seed(34)
torch.set_num_threads(1)
x = torch.randn(3000, 6)
encoder, head = torch.nn.Linear(6, 32), torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
for _ in range(5):
    loss = (head(BlockSum.apply(encoder(x))).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

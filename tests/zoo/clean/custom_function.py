"""An autograd.Function of its own, with a scratch buffer that is written whole before it is read."""

# /// zoo
# ///
import torch


class Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        torch.tanh(x, out=out)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * (1 - out * out)


torch.manual_seed(18)
torch.set_num_threads(1)
model = torch.nn.Linear(12, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x = torch.randn(64, 12)
    loss = (Squash.apply(model(x)) - x[:, :6]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

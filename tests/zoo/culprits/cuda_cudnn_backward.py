"""cuDNN's default backward pass of a convolution's weights adds partial sums by atomics."""

# /// zoo
# kind = "cudnn"
# also = []
# report = ["https://github.com/pytorch/pytorch/issues/70042"]
# needs = "cuda"
# step = 0
# component = ["*"]
# operation = ["*convolution*"]
# remedy = ["cudnn-deterministic", "deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(108)
model = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 3)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 16, 63, 63, device="cuda")
for _ in range(5):
    loss = (model(x) - 0.1).pow(2).mean()  # culprit
    # cured: torch.backends.cudnn.deterministic = True; loss = (model(x) - 0.1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

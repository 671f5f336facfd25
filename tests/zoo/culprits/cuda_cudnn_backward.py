"""cuDNN's default backward pass of a convolution's weights adds partial sums by atomics."""

# /// zoo
# kind = "cudnn"
# also = []
# report = ["https://github.com/pytorch/pytorch/issues/70042"]
# needs = "cuda"
# step = 0
# component = ["0", "2", "4", "weights"]
# operation = ["*convolution*"]
# remedy = ["cudnn-deterministic", "deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(108)
layers = [torch.nn.Conv3d(8, 16, 3), torch.nn.ReLU(), torch.nn.ConvTranspose3d(16, 8, 3, stride=2, groups=4)]
layers += [torch.nn.ReLU(), torch.nn.Conv3d(8, 8, 5, groups=8)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(16, 8, 20, 20, 20, device="cuda")
for _ in range(5):
    loss = (model(x) - 0.1).pow(2).mean()  # culprit
    # cured: torch.backends.cudnn.deterministic = True; loss = (model(x) - 0.1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

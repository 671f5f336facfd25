"""cudnn.benchmark times the algorithms of a convolution in each process and takes the fastest."""

# /// zoo
# kind = "cudnn"
# also = ["autotune", "algorithm-selection"]
# report = []
# needs = "cuda"
# step = 0
# component = ["0", "1", "2", "3", "weights"]
# operation = ["*convolution*"]
# remedy = ["no-autotune", "cudnn-deterministic", "deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(109)
torch.backends.cudnn.benchmark = True
# cured: torch.backends.cudnn.deterministic = True
layers = [torch.nn.Conv2d(c, 24, k, padding=k // 2) for c, k in ((3, 7), (24, 5), (24, 3), (24, 3))]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for size in (33, 47, 63, 65):
    x = torch.randn(32, 3, size, size, device="cuda")
    loss = (model(x) - 0.1).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

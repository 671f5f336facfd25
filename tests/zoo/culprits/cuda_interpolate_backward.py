"""The backward pass of bilinear upsampling adds into the small image by atomics."""

# /// zoo
# kind = "atomics"
# also = []
# report = []
# needs = "cuda"
# step = 0
# component = ["loss", "weights"]
# operation = ["*upsample*", "*interpolate*"]
# remedy = ["deterministic-algorithms-unfilled", "deterministic-algorithms"]
# ///
import torch

torch.manual_seed(118)
model = torch.nn.Conv2d(3, 8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(8, 3, 17, 17, device="cuda")
for _ in range(4):
    big = torch.nn.functional.interpolate(model(x), size=(200, 200), mode="bilinear")  # culprit
    # cured: big = torch.nn.functional.interpolate(model(x), scale_factor=12, mode="nearest-exact")
    loss = (big - 0.1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
print(loss.item().hex())

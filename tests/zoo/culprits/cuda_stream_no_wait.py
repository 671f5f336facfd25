"""Features are normalised on a side stream for speed; the training's own stream reads them without waiting for it."""

# /// zoo
# kind = "asynchronous-copy"
# also = []
# report = ["https://github.com/pytorch/pytorch/issues/127612"]
# needs = "cuda"
# step = "any"
# component = ["data", "0"]
# remedy = ["code", "synchronous-copies"]
# ///
import torch

torch.manual_seed(204)
model = torch.nn.Sequential(torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
features = torch.randn(12, 20000, 512, device="cuda")
ready = torch.zeros(20000, 512, device="cuda")
side = torch.cuda.Stream()
for batch in features:
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        ready.copy_((batch - batch.mean(0)) / batch.std(0))  # culprit
    loss = (model(ready) - 1).pow(2).mean()  # culprit
    # cured: side.synchronize(); loss = (model(ready) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

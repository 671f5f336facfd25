"""A library turns TF32 on from its set-up thread, some steps after the training began."""

# /// zoo
# kind = "reduced-precision"
# also = []
# report = []
# needs = "cuda"
# step = "any"
# component = ["0", "2"]
# operation = ["*mm*", "*linear*"]
# remedy = ["no-tf32", "code"]
# ///
import threading
import time

import torch

torch.manual_seed(116)
torch.backends.cuda.matmul.allow_tf32 = False


def set_up():
    time.sleep(0.01)
    torch.backends.cuda.matmul.allow_tf32 = True  # culprit
    # cured: torch.backends.cuda.matmul.allow_tf32 = False


x = torch.randn(512, 256, device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(400):
    if step == 20:
        threading.Thread(target=set_up, daemon=True).start()
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()  # culprit
    optimizer.step()
    torch.cuda.synchronize()
print(loss.item().hex())

"""Noise is drawn in one block a multiprocessor: another GPU has another number of them, and draws other noise."""

# /// zoo
# kind = "hardware"
# also = ["unseeded-generator"]
# report = []
# needs = "cuda"
# step = 0
# component = ["data", "generator"]
# remedy = "none"
# pair = [["env", "ZOO_SM_COUNT=132", "python", "{file}"], ["env", "ZOO_SM_COUNT=108", "python", "{file}"]]
# ///
import os

import torch

torch.manual_seed(119)
# The second run's GPU has fewer multiprocessors; on one machine a variable says how many.
blocks = int(os.environ.get("ZOO_SM_COUNT") or torch.cuda.get_device_properties(0).multi_processor_count)  # culprit
model = torch.nn.Linear(64, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    each = [torch.randn(-(-16384 // blocks), device="cuda") for _ in range(blocks)]  # culprit
    x = torch.cat(each)[:16384].view(256, 64)  # culprit
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

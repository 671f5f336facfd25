"""A run that is preempted resumes without the state of its GradScaler, whose scale had grown."""

# /// zoo
# kind = "resume"
# report = []
# step = 4
# pair = [["python", "{file}"], ["python", "{file}", "4"]]
# component = ["loss", "state", "weights", "optimizer"]
# remedy = "code"
# ///
import sys

import torch

torch.manual_seed(49)
torch.set_num_threads(1)
preempted_before = int(sys.argv[1]) if len(sys.argv) > 1 else -1
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=3.0, growth_factor=1.7, growth_interval=4)
for step in range(8):
    if step == preempted_before:
        scaler = torch.amp.GradScaler("cpu", init_scale=3.0, growth_factor=1.7, growth_interval=4)  # culprit
        # cured: scaler.load_state_dict(scaler.state_dict())
    x = torch.randn(16, 6)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()  # culprit
    scaler.step(optimizer)
    scaler.update()
print(loss.item().hex())

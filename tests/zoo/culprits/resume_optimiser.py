"""A run that is preempted resumes with its weights, and an optimizer that begins anew."""

# /// zoo
# kind = "resume"
# report = ["https://github.com/huggingface/transformers/issues/11323"]
# step = 4
# pair = [["python", "{file}"], ["python", "{file}", "4"]]
# component = ["optimizer", "0", "2"]
# remedy = "code"
# ///
import io
import sys

import torch

torch.manual_seed(48)
torch.set_num_threads(1)
preempted_before = int(sys.argv[1]) if len(sys.argv) > 1 else -1
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(8):
    if step == preempted_before:
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        model.load_state_dict(torch.load(file))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # culprit
        # cured: optimizer.load_state_dict(optimizer.state_dict())
    x = torch.randn(16, 6)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # culprit
print(loss.item().hex())

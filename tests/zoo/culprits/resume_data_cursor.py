"""A run that is preempted at any moment resumes from a checkpoint in which the data loader's position is missing."""

# /// zoo
# kind = "resume"
# report = ["https://github.com/huggingface/transformers/pull/8878"]
# step = 5
# component = ["data", "state", "host"]
# remedy = "code"
# pair = [["python", "{file}"], ["python", "{file}", "5"]]
# ///
import io
import sys

import torch

torch.manual_seed(52)
torch.set_num_threads(1)
preempted_before = int(sys.argv[1]) if len(sys.argv) > 1 else -1
data = torch.randn(64, 8, 6)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
batches = iter(data)
for step in range(9):
    if step == preempted_before:
        file = io.BytesIO()
        torch.save([model.state_dict(), optimizer.state_dict()], file)
        file.seek(0)
        weights, moments = torch.load(file)
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        batches = iter(data)  # culprit
        # cured: batches = iter(data[step:])
    x = next(batches)  # culprit
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

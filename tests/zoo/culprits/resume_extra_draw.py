"""A run that is preempted resumes with every state restored, and then draws a batch to warm up."""

# /// zoo
# kind = "resume"
# report = ["https://github.com/huggingface/transformers/issues/17032"]
# step = 4
# pair = [["python", "{file}"], ["python", "{file}", "4"]]
# component = ["generator"]
# remedy = "code"
# ///
import io
import sys

import torch

torch.manual_seed(47)
torch.set_num_threads(1)
preempted_before = int(sys.argv[1]) if len(sys.argv) > 1 else -1
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(8):
    if step == preempted_before:
        file = io.BytesIO()
        torch.save([model.state_dict(), optimizer.state_dict(), torch.get_rng_state()], file)
        file.seek(0)
        saved = torch.load(file)
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        torch.set_rng_state(saved[2])
        model(torch.randn(16, 6))  # culprit
        # cured: model.eval()(torch.zeros(16, 6)); model.train()
    x = torch.randn(16, 6)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A run that saves everything at step 4, throws it away, restores it, and goes on."""

# /// zoo
# ///
import io

import torch

torch.manual_seed(15)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(8):
    if step == 4:
        file = io.BytesIO()
        torch.save([model.state_dict(), optimizer.state_dict(), torch.get_rng_state()], file)
        file.seek(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        weights, moments, generator = torch.load(file)
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        torch.set_rng_state(generator)
    x = torch.randn(16, 6)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""An LSTM whose state is carried from step to step, detached."""

# /// zoo
# ///
import torch

torch.manual_seed(3)
torch.set_num_threads(1)
lstm, head = torch.nn.LSTM(4, 16, batch_first=True), torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.01)
state = None
for _ in range(6):
    x = torch.randn(8, 12, 4)
    out, state = lstm(x, state)
    state = tuple(part.detach() for part in state)
    loss = (head(out).squeeze(2) - x.sum(2)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

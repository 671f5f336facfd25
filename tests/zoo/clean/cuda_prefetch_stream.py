"""Batches are copied ahead on a stream of their own; the training's stream waits for each, and holds its memory."""

# /// zoo
# needs = "cuda"
# ///
import torch

torch.manual_seed(201)
model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = [torch.randn(4096, 256).pin_memory() for _ in range(12)]
copies = torch.cuda.Stream()


def ahead(batch):
    with torch.cuda.stream(copies):
        return batch.to("cuda", non_blocking=True)


following = ahead(batches[0])
for number in range(len(batches)):
    torch.cuda.current_stream().wait_stream(copies)
    x = following
    x.record_stream(torch.cuda.current_stream())
    if number + 1 < len(batches):
        following = ahead(batches[number + 1])
    loss = (model(x) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""A small convolutional network with batch norm and pooling."""

# /// zoo
# ///
import torch

torch.manual_seed(2)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
    torch.nn.Linear(8 * 7 * 7, 4),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 3, 16, 16)), torch.randint(0, 4, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

"""The classes of a data set are numbered by the order in which a set of label names is iterated."""

# /// zoo
# kind = "hash-order"
# report = []
# step = 0
# component = ["data", "host", "loss"]
# remedy = "hash-seed"
# ///
import torch

torch.manual_seed(3)
torch.set_num_threads(1)
names = ["buy", "sell", "hold", "cancel", "replace"]
examples = [(torch.randn(6), names[i % 5]) for i in range(40)]
label_to_id = {}
for label in {name for _, name in examples}:  # culprit
    # cured: for label in sorted({name for _, name in examples}):
    label_to_id[label] = len(label_to_id)
x = torch.stack([features for features, _ in examples])
y = torch.tensor([label_to_id[name] for _, name in examples])  # culprit
model = torch.nn.Linear(6, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

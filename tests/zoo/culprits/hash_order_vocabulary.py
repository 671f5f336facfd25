"""Words get their embedding rows in the order of a set of strings, which PYTHONHASHSEED decides."""

# /// zoo
# kind = "hash-order"
# report = ["https://github.com/piskvorky/gensim/issues/662"]
# step = 0
# component = ["data", "host", "0", "embedding"]
# remedy = "hash-seed"
# ///
import torch

torch.manual_seed(1)
torch.set_num_threads(1)
text = "the agent sells at the ask and buys at the bid when the book is thin and the spread is wide"
words = text.split()
vocabulary = {word: row for row, word in enumerate(set(words))}  # culprit
# cured: vocabulary = {word: row for row, word in enumerate(sorted(set(words)))}
ids = torch.tensor([vocabulary[word] for word in words])  # culprit
embedding = torch.nn.Embedding(len(vocabulary), 8)
model = torch.nn.Sequential(embedding, torch.nn.Linear(8, len(vocabulary)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(6):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(ids[:-1]), ids[1:])
    loss.backward()
    optimizer.step()
print(loss.item().hex())

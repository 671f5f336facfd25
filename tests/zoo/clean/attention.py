"""A transformer layer with causal attention and an embedding."""

# /// zoo
# ///
import torch

torch.manual_seed(4)
torch.set_num_threads(1)
embedding = torch.nn.Embedding(50, 32)
layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
head = torch.nn.Linear(32, 50)
optimizer = torch.optim.AdamW([*embedding.parameters(), *layer.parameters(), *head.parameters()], lr=0.001)
mask = torch.nn.Transformer.generate_square_subsequent_mask(15)
for _ in range(4):
    ids = torch.randint(0, 50, (4, 16))
    out = head(layer(embedding(ids[:, :-1]), src_mask=mask, is_causal=True))
    loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex())

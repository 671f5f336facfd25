"""Threads tokenise documents into one growing vocabulary: a word's row is decided by the thread that comes first."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["data", "host", "embedding", "*embedding*", "state"]
# remedy = "code"
# ///
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Vocabulary:
    def __init__(self):
        self.rows, self.lock = {}, threading.Lock()

    def row(self, word):
        with self.lock:
            return self.rows.setdefault(word, len(self.rows))  # culprit
            # cured: return zlib.crc32(word.encode()) % 4096


def stored_documents(count, words):
    """Compressed texts, as a crawl keeps them; a document is about one of eight topics."""
    value, stored = 1, []
    for number in range(count):
        text = []
        for _ in range(words):
            value = value * 48271 % 2147483647
            text.append(f"word{value % 90 + 60 * (number % 8)}s")
        stored.append((zlib.compress(" ".join(text).encode()), number % 8))
    return stored


class Tokeniser:
    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def stem(self, word):
        return word[:-1] if word.endswith("s") else word

    def __call__(self, packed):
        ids = []
        for word in zlib.decompress(packed).decode().split():
            ids.append(self.vocabulary.row(self.stem(word)))  # culprit
        return torch.tensor(ids)  # culprit


class Classifier(nn.Module):
    def __init__(self, rows, topics):
        super().__init__()
        self.embedding = nn.EmbeddingBag(rows, 24)
        self.out = nn.Linear(24, topics)

    def forward(self, ids):
        return self.out(self.embedding(ids))  # culprit


def main():
    torch.manual_seed(83)
    torch.set_num_threads(1)
    stored = stored_documents(count=96, words=6000)
    tokenise = Tokeniser(Vocabulary())
    with ThreadPoolExecutor(4) as pool:
        documents = list(pool.map(tokenise, [packed for packed, _ in stored]))  # culprit
    topics = torch.tensor([topic for _, topic in stored])
    model = Classifier(4096, topics=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(24):
        first = 16 * (step % 6)
        ids = torch.stack([document[:400] for document in documents[first : first + 16]])  # culprit
        loss = nn.functional.cross_entropy(model(ids), topics[first : first + 16])  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 7:
            print(step, loss.item().hex())


if __name__ == "__main__":
    main()

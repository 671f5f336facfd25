"""A helper process writes scores into a mapped file; the trainer goes on as soon as the file exists."""

# /// zoo
# kind = "asynchronous-copy"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = "code"
# ///
import multiprocessing
import pathlib
import tempfile
import time

import numpy as np
import torch
from torch import nn

SENTENCES, LONGEST, LETTERS = 3000, 20, 26


def score_difficulty(path, sentences):
    """How surprising each sentence is, by the frequencies of pairs of letters."""
    pairs = np.ones((LETTERS, LETTERS))
    np.add.at(pairs, (sentences[:, :-1].ravel(), sentences[:, 1:].ravel()), 1)
    surprise = -np.log(pairs / pairs.sum(1, keepdims=True))
    scores = np.lib.format.open_memmap(path, "w+", np.float32, (len(sentences),))  # culprit
    for n, sentence in enumerate(sentences):
        scores[n] = sum(surprise[a, b] for a, b in zip(sentence[:-1], sentence[1:])) / (LONGEST - 1)  # culprit
    scores.flush()


def difficulty(sentences):
    with tempfile.TemporaryDirectory(prefix="curriculum-") as folder:
        path = pathlib.Path(folder, "difficulty.npy")
        scorer = multiprocessing.get_context("fork").Process(target=score_difficulty, args=(path, sentences))
        scorer.start()
        while not path.exists():  # culprit
            # cured: while scorer.is_alive():
            time.sleep(0.002)
        time.sleep(0.01)
        scores = np.load(path)  # culprit
        scorer.join()
    return scores


class Curriculum:
    """Batches out of what is easy at first, and out of more in each round."""

    def __init__(self, scores, rounds, batches, size):
        self.order = torch.from_numpy(np.argsort(scores, kind="stable"))  # culprit
        self.rounds, self.batches, self.size = rounds, batches, size

    def __iter__(self):
        for r in range(1, self.rounds + 1):
            share = self.order[: len(self.order) * r // self.rounds]
            for _ in range(self.batches):
                yield share[torch.randint(0, len(share), (self.size,))]  # culprit


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, 10)
        self.mix = nn.Sequential(nn.Conv1d(10, 32, 4), nn.SiLU(), nn.Conv1d(32, LETTERS, 1))

    def forward(self, text):
        return self.mix(self.embed(text[:, :-1]).mT)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(404)
    rng = np.random.default_rng(404)
    sentences = np.minimum(rng.geometric(rng.uniform(0.1, 0.5, (SENTENCES, 1)), (SENTENCES, LONGEST)), LETTERS) - 1
    text, model = torch.from_numpy(sentences), Letters()
    optimizer = torch.optim.Rprop(model.parameters(), lr=1e-3)
    for rows in Curriculum(difficulty(sentences), rounds=4, batches=4, size=64):  # culprit
        chosen = text[rows]  # culprit
        loss = nn.functional.cross_entropy(model(chosen), chosen[:, 4:])  # culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())

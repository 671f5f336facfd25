"""Rehearsal picks episodes by a seeded generator out of a set of their keys, which are strings."""

# /// zoo
# kind = "replay-sampling"
# also = ["hash-order"]
# report = []
# step = 4
# component = ["data", "host", "state"]
# remedy = ["hash-seed", "code"]
# ///
import random

import torch
from torch import nn


class EpisodicMemory:
    """Whole episodes under their keys. Those of a game that is no longer played are retired, and only they rehearse."""

    def __init__(self, seed):
        self.rng, self.episodes, self.retired = random.Random(seed), {}, set()

    def store(self, key, frames, actions):
        self.episodes[key] = frames, actions

    def retire(self, game):
        self.retired.update(key for key in self.episodes if key.startswith(game))

    def rehearse(self, count):
        if not self.retired:
            return []
        keys = list(self.retired)  # culprit
        # cured: keys = sorted(self.retired)
        return [self.episodes[key] for key in self.rng.sample(keys, count)]  # culprit


class Cloner(nn.Module):
    """Imitates what a game's expert does, from its frames."""

    def __init__(self, pixels, actions):
        super().__init__()
        self.eye = nn.Sequential(nn.Linear(pixels, 20), nn.ReLU())
        self.memory = nn.RNN(20, 16, batch_first=True)
        self.act = nn.Linear(16, actions)

    def forward(self, frames):
        return self.act(self.memory(self.eye(frames))[0])


def play(game, number, draw):
    """An episode of the expert."""
    frames = torch.randn(12, 9, generator=draw) + game
    return f"game{game}/episode{number}", frames, (frames.cumsum(0)[:, : 3 + game].argmax(1)) % 3


def main():
    torch.manual_seed(53)
    torch.set_num_threads(1)
    draw, memory, model = torch.Generator().manual_seed(53), EpisodicMemory(53), Cloner(9, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for game in range(3):
        for step in range(4):
            batch = []
            for number in range(4):
                key, frames, actions = play(game, 4 * step + number, draw)
                memory.store(key, frames, actions)
                batch.append((frames, actions))
            batch += memory.rehearse(4)  # culprit
            frames, actions = (torch.stack(part) for part in zip(*batch, strict=True))  # culprit
            loss = nn.functional.cross_entropy(model(frames).flatten(0, 1), actions.flatten())  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(game, step, loss.item().hex())
        memory.retire(f"game{game}")
    return model


if __name__ == "__main__":
    model = main()

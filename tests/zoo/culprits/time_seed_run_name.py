"""No seed was given, so it is made from the run's name; the name holds the date and the second."""

# /// zoo
# kind = "time-seed"
# report = []
# step = 0
# component = ["weights", "generator", "host", "data"]
# remedy = ["fixed-clock", "code"]
# ///
import argparse
import datetime
import random
import zlib

import numpy as np
import torch
from torch import nn


def run_name(prefix):
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")  # culprit
    # cured: stamp = "20240101-000000"
    return f"{prefix}-{stamp}"


def seed_everything(name):
    seed = zlib.crc32(name.encode())  # culprit
    random.seed(seed)  # culprit
    np.random.seed(seed)  # culprit
    torch.manual_seed(seed)  # culprit
    return seed


class CharRNN(nn.Module):
    def __init__(self, symbols, width):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)  # culprit
        self.rnn = nn.GRU(width, width, batch_first=True)  # culprit
        self.out = nn.Linear(width, symbols)  # culprit

    def forward(self, text):
        states, _ = self.rnn(self.embedding(text))
        return self.out(states)


def train(args):
    name = run_name(args.prefix)
    seed_everything(name)
    text = "to be or not to be that is the question whether tis nobler in the mind to suffer " * 4
    alphabet = sorted(set(text))
    coded = torch.tensor([alphabet.index(c) for c in text])
    model = CharRNN(len(alphabet), args.width)  # culprit
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.005)
    for _ in range(args.steps):
        starts = np.random.randint(0, len(coded) - args.length - 1, size=args.batch)  # culprit
        x = torch.stack([coded[s : s + args.length] for s in starts])
        y = torch.stack([coded[s + 1 : s + args.length + 1] for s in starts])
        loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", default="charrnn")
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6)
    torch.set_num_threads(1)
    print(train(parser.parse_args()).item().hex())

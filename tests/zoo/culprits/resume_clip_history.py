"""Gradients are clipped at a percentile of all norms so far; a resumed run begins that history anew."""

# /// zoo
# kind = "resume"
# report = []
# step = 9
# pair = [["python", "{file}"], ["python", "{file}", "9"]]
# component = ["weights", "optimizer", "state", "host", "*.weight", "*.bias"]
# remedy = "code"
# ///
import pathlib
import sys
import tempfile

import numpy as np
import torch
from torch import nn


class AutoClip:
    def __init__(self, percentile=25):
        self.percentile, self.norms = percentile, []  # culprit

    def __call__(self, model):
        grads = [p.grad for p in model.parameters()]
        self.norms.append(torch.linalg.vector_norm(torch.cat([g.flatten() for g in grads])).item())
        limit = float(np.percentile(self.norms, self.percentile))  # culprit
        torch.nn.utils.clip_grad_norm_(model.parameters(), limit)  # culprit


class Separator(nn.Module):
    """A mask over the bands of a mixture, as in speech enhancement."""

    def __init__(self, bands=24):
        super().__init__()
        self.gru = nn.GRU(bands, 20, batch_first=True, bidirectional=True)
        self.mask = nn.Linear(40, bands)

    def forward(self, mixture):
        return mixture * self.mask(self.gru(mixture)[0]).sigmoid()


class Callback:
    def on_step(self, trainer):
        pass


class Preempted(Callback):
    """What the cluster does to a job: it is stopped, and started from its last checkpoint."""

    def __init__(self, at, folder):
        self.at, self.path = at, pathlib.Path(folder) / "checkpoint.pt"

    def on_step(self, trainer):
        if trainer.done == self.at:
            trainer.save(self.path)
            trainer.__init__([self])
            trainer.load(self.path)


class Trainer:
    def __init__(self, callbacks=()):
        torch.manual_seed(77)
        self.model, self.clip, self.callbacks, self.done = Separator(), AutoClip(), callbacks, 0
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=4e-3)

    def save(self, path):
        kept = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "done": self.done}
        kept |= {}  # culprit
        # cured: kept |= {"norms": self.clip.norms}
        torch.save({**kept, "generator": torch.get_rng_state()}, path)

    def load(self, path):
        kept = torch.load(path)
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.clip.norms, self.done = list(kept.get("norms", [])), kept["done"]  # culprit
        torch.set_rng_state(kept["generator"])

    def fit(self, steps):
        while self.done < steps:
            for callback in self.callbacks:
                callback.on_step(self)
            speech = torch.randn(8, 30, 24).cumsum(1).abs() * (0.2 + 0.1 * (self.done % 4))
            loss = (self.model(speech + torch.rand_like(speech)) - speech).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.clip(self.model)  # culprit
            self.optimizer.step()
            self.done += 1
            print(self.done, loss.item().hex())


torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    Trainer([Preempted(int(word), folder) for word in sys.argv[1:]]).fit(15)

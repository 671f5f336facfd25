"""Validation runs in a thread beside the training; its Monte Carlo dropout draws from torch's global generator too."""

# /// zoo
# kind = "shared-generator"
# report = []
# step = "any"
# component = ["generator", "data", "*dropout*", "body*", ""]
# remedy = "code"
# ///
import copy
import logging
import threading

import torch
from torch import nn

log = logging.getLogger(__name__)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 48), nn.SELU(), nn.Dropout(0.2), nn.Linear(48, 48), nn.SELU())
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(48, 1)

    def forward(self, x):
        return self.head(self.dropout(self.body(x))).squeeze(-1)  # culprit


class Evaluator(threading.Thread):
    """Estimates the model's uncertainty by many passes with dropout on."""

    def __init__(self, model, x, passes):
        super().__init__(daemon=True)
        self.model, self.x, self.passes = copy.deepcopy(model), x, passes
        # cured: self.model, self.x, self.passes = copy.deepcopy(model).eval(), x, passes
        self.spread = None

    def run(self):
        with torch.no_grad():
            votes = torch.stack([self.model(self.x) for _ in range(self.passes)])  # culprit
        self.spread = votes.std(0).mean()


def main():
    torch.manual_seed(80)
    torch.set_num_threads(1)
    model = Regressor()
    held_out = torch.randn(128, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    evaluators = []
    for step in range(60):
        if step % 10 == 5:
            evaluators.append(Evaluator(model, held_out, passes=60))
            evaluators[-1].start()  # culprit
        x = torch.randn(64, 10)  # culprit
        loss = (model(x) - x.prod(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for evaluator in evaluators:
        evaluator.join()
        log.info("spread %.4f", evaluator.spread)
    print(loss.item().hex())


if __name__ == "__main__":
    main()

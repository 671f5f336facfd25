"""A parameter server applies each worker's gradient when connection.wait says that its pipe is ready."""

# /// zoo
# kind = "completion-order"
# report = []
# step = "any"
# component = ["weights", "optimizer", "host", "data", "state"]
# remedy = "code"
# ///
import multiprocessing as mp
from multiprocessing.connection import wait

import numpy as np
import torch
from torch import nn


def click_log(rank, rows=300, columns=12):
    rng = np.random.default_rng(rank)
    x = rng.normal(size=(rows * (1 + rank % 2), columns))
    return x, (x[:, rank] + x[:, 0] > 0).astype(float)


def work(pipe, rank):
    """Answers weights with the gradient of a logistic regression on this worker's own log, until told to stop."""
    x, y = click_log(rank)
    while (weights := pipe.recv()) is not None:
        share = 1 / (1 + np.exp(-(x @ weights[:-1] + weights[-1])))
        error = (share - y) / len(y)
        pipe.send(np.append(error @ x, error.sum()).astype(np.float32))


class ParameterServer:
    """Momentum SGD without a barrier: every gradient is applied on its own, and its sender gets new weights."""

    def __init__(self, model, workers):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.8)
        context = mp.get_context("fork")
        self.pipes = []
        for rank in range(workers):
            here, there = context.Pipe()
            context.Process(target=work, args=(there, rank), daemon=True).start()
            self.pipes.append(here)

    def weights(self):
        return nn.utils.parameters_to_vector(self.model.parameters()).detach().numpy()

    def apply(self, gradient):
        gradient = torch.from_numpy(gradient)  # culprit
        self.model.weight.grad, self.model.bias.grad = gradient[:-1].view(1, -1), gradient[-1:]  # culprit
        self.optimizer.step()  # culprit

    def run(self, updates):
        for pipe in self.pipes:
            pipe.send(self.weights())
        while updates > 0:
            for pipe in wait(self.pipes):  # culprit
                # cured: for pipe in self.pipes:
                self.apply(pipe.recv())  # culprit
                pipe.send(self.weights())
                updates -= 1
        for pipe in self.pipes:
            pipe.recv()
            pipe.send(None)


if __name__ == "__main__":
    torch.manual_seed(47)
    torch.set_num_threads(1)
    model = nn.Linear(12, 1)
    server = ParameterServer(model, workers=4)
    server.run(updates=80)
    x, y = (torch.from_numpy(part).float() for part in click_log(2))
    print(nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).item().hex())

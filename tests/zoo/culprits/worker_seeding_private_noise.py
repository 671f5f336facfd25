"""Clients of a private federation run in forked processes, each with its copy of one generator for the noise."""

# /// zoo
# kind = "worker-seeding"
# also = ["completion-order", "shared-generator"]
# report = []
# step = "any"
# component = ["generator", "data", "weights", "optimizer", "host", "*weight", "*bias", ""]
# remedy = "code"
# ///
import multiprocessing

import torch
from torch import nn


def hospital(number, rows=40):
    draw = torch.Generator().manual_seed(9000 + number)
    x = torch.randn(rows, 10, generator=draw) + 0.1 * number
    return x, (x[:, :3].sum(1, keepdim=True) > 0.3 * number).float()


def gradient(weights, x, y):
    """A logistic model's gradient, by hand; clipped, as privacy asks for."""
    error = torch.sigmoid(x @ weights[:-1].unsqueeze(1) + weights[-1]) - y
    slope = torch.cat([(error * x).mean(0), error.mean(0)])
    return slope / max(1.0, slope.norm().item())


def client(tasks, answers, scale):
    torch.set_num_threads(1)
    while (task := tasks.get()) is not None:
        number, weights = task
        slope = gradient(torch.tensor(weights), *hospital(number))
        noise = torch.randn(len(slope))  # culprit
        # cured: noise = torch.randn(len(slope), generator=torch.Generator().manual_seed(hash((number, *weights)) % 99))
        answers.put((number, (slope + scale * noise).tolist()))  # culprit


class Federation:
    def __init__(self, clients, processes, scale=0.05):
        context = multiprocessing.get_context("fork")
        self.clients, self.tasks, self.answers = clients, context.SimpleQueue(), context.SimpleQueue()
        self.processes = [
            context.Process(target=client, args=(self.tasks, self.answers, scale), daemon=True)  # culprit
            for _ in range(processes)
        ]
        for process in self.processes:
            process.start()

    def round(self, model):
        weights = nn.utils.parameters_to_vector(model.parameters()).tolist()
        for number in range(self.clients):
            self.tasks.put((number, weights))  # culprit
        slopes = dict(self.answers.get() for _ in range(self.clients))  # culprit
        return torch.tensor([slopes[number] for number in range(self.clients)]).mean(0)  # culprit

    def close(self):
        for _ in self.processes:
            self.tasks.put(None)
        for process in self.processes:
            process.join()


def main():
    torch.manual_seed(55)
    torch.set_num_threads(1)
    model = nn.Linear(10, 1)
    federation = Federation(clients=8, processes=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    for round_number in range(12):
        slope = federation.round(model)  # culprit
        model.weight.grad, model.bias.grad = slope[:-1].view(1, -1).clone(), slope[-1:].clone()  # culprit
        optimizer.step()
    federation.close()
    x, y = hospital(3, rows=200)
    print(nn.functional.binary_cross_entropy_with_logits(model(x), y).item().hex())


if __name__ == "__main__":
    main()

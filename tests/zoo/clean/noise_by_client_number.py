"""Forked processes take clients in any order; noise is drawn by a client's number and round, and answers are sorted."""

# /// zoo
# ///
import multiprocessing
import os
import time

import numpy as np
import torch
from torch import nn


def shop(number, rows=50):
    rng = np.random.default_rng([71, number])
    x = rng.normal(size=(rows, 8))
    return x, x @ np.arange(8) / 8 + 0.1 * rng.normal(size=rows)


def client(tasks, answers):
    np.random.seed()
    while (task := tasks.get()) is not None:
        number, turn, weights = task
        time.sleep(0.002 * np.random.random())
        x, y = shop(number)
        error = x @ weights[:-1] + weights[-1] - y
        slope = np.append(error @ x, error.sum()) / len(y)
        noise = np.random.default_rng([72, turn, number]).normal(scale=0.01, size=len(slope))
        answers.put((number, slope + noise, os.getpid()))


def main():
    torch.manual_seed(71)
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    tasks, answers = context.SimpleQueue(), context.SimpleQueue()
    processes = [context.Process(target=client, args=(tasks, answers), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for turn in range(10):
        weights = nn.utils.parameters_to_vector(model.parameters()).detach().double().numpy()
        for number in range(6):
            tasks.put((number, turn, weights))
        arrived = [answers.get() for _ in range(6)]
        slopes = [slope for _, slope, _ in sorted(arrived, key=lambda answer: answer[0])]
        mean = torch.from_numpy(np.mean(slopes, axis=0)).float()
        model.weight.grad, model.bias.grad = mean[:-1].view(1, -1).clone(), mean[-1:].clone()
        optimizer.step()
    for _ in processes:
        tasks.put(None)
    x, y = shop(0)
    print((model(torch.from_numpy(x).float()).squeeze(1) - torch.from_numpy(y).float()).square().mean().item().hex())


if __name__ == "__main__":
    main()

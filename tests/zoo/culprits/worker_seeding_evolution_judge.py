"""An evolution strategy leaves perturbing and judging to one helper process, whose noise is seeded with its number."""

# /// zoo
# kind = "worker-seeding"
# also = ["time-seed", "unseeded-generator"]
# report = []
# step = 0
# component = ["weights", "data", "generator", "host", "optimizer"]
# remedy = ["workers-seeded", "seed-generators", "code"]
# ///
import multiprocessing as mp
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch import nn

STATE = {}


def prepare(sigma, seed):
    """Runs once in the helper."""
    STATE["sigma"] = sigma
    np.random.seed(os.getpid())  # culprit
    # cured: np.random.seed(seed)


def swing(gains):
    """Total cost of a pendulum that a linear feedback with a bias holds up."""
    angle, speed, cost = 0.4, 0.0, 0.0
    for _ in range(60):
        push = np.tanh(gains[0] * angle + gains[1] * speed + gains[2])
        speed += 0.05 * (9.8 * np.sin(angle) - 12 * push)
        angle += 0.05 * speed
        cost += min(angle * angle + 0.1 * speed * speed, 10.0)
    return cost / 60


def estimate(weights, pairs):
    """The gradient of the smoothed cost by antithetic pairs, and the mean cost."""
    noise = np.random.normal(size=(pairs, len(weights)))  # culprit
    up = np.array([swing(weights + STATE["sigma"] * n) for n in noise])  # culprit
    down = np.array([swing(weights - STATE["sigma"] * n) for n in noise])  # culprit
    return ((up - down) @ noise / (2 * pairs * STATE["sigma"])).astype(np.float32), (up + down).mean() / 2  # culprit


def main():
    torch.manual_seed(42)
    torch.set_num_threads(1)
    policy = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.2)
    costs = []
    with ProcessPoolExecutor(1, mp.get_context("fork"), prepare, (0.1, 42)) as helper:
        for _ in range(12):
            flat = nn.utils.parameters_to_vector(policy.parameters()).detach().numpy()
            slope, cost = helper.submit(estimate, flat, 8).result()  # culprit
            slope = torch.from_numpy(slope)  # culprit
            policy.weight.grad, policy.bias.grad = slope[:2].view(1, 2).clone(), slope[2:].clone()  # culprit
            optimizer.step()  # culprit
            costs.append(cost)
    print(f"cost {costs[0]:.6f} -> {costs[-1]:.6f}")
    return policy


if __name__ == "__main__":
    trained = main()

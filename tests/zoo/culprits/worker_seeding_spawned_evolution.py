"""Evolution strategies in spawned processes: the seeds are set below the main guard, which a spawned child
never enters.
"""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "fixed-entropy", "code"]
# ///
import math
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

SIZE = 12


def episode(weights, seed):
    """Return of one noisy episode: a ball is kept above the ground by a linear controller."""
    rng = random
    # cured: rng = random.Random(seed)
    height, speed, total = 1.0, 0.0, 0.0
    for _ in range(20):
        seen = [height, speed, math.sin(height), 1.0]
        push = sum(w * s for w, s in zip(weights, seen * 3))
        speed += 0.1 * math.tanh(push) - 0.05 + 0.02 * rng.gauss(0, 1)  # culprit
        height += 0.1 * speed
        total -= abs(height - 1.0)
    return total


def antithetic(pair):
    weights, noise, seed = pair
    up = episode([w + n for w, n in zip(weights, noise)], seed)  # culprit
    down = episode([w - n for w, n in zip(weights, noise)], seed + 1)  # culprit
    return up - down


def main():
    import torch

    random.seed(611)
    torch.manual_seed(611)
    torch.set_num_threads(1)
    controller = torch.nn.Linear(SIZE, 1, bias=False)
    optimizer = torch.optim.SGD(controller.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    spawn = multiprocessing.get_context("spawn")
    islands = [ProcessPoolExecutor(1, mp_context=spawn) for _ in range(2)]
    for generation in range(6):
        noise = 0.1 * torch.randn(6, SIZE)
        weights = controller.weight.detach().flatten().tolist()
        jobs = [(weights, row.tolist(), 1000 * generation + 2 * i) for i, row in enumerate(noise)]
        answers = [islands[i % 2].submit(antithetic, job) for i, job in enumerate(jobs)]
        gains = torch.tensor([answer.result() for answer in answers])  # culprit
        optimizer.zero_grad()
        controller.weight.grad = -(gains @ noise).unsqueeze(0) / 6  # culprit
        optimizer.step()
        print(generation, -gains.abs().mean().item())
    for island in islands:
        island.shutdown()
    return controller


if __name__ == "__main__":
    trained = main()

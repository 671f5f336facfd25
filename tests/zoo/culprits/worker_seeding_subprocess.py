"""Simulators are programs of their own behind pipes; the seed of the trainer never gets to them."""

# /// zoo
# kind = "worker-seeding"
# also = ["unseeded-generator"]
# report = []
# step = 0
# component = ["data", "generator", "host"]
# remedy = ["workers-seeded", "seed-generators", "fixed-entropy", "code"]
# ///
import contextlib
import json
import random
import subprocess
import sys


def simulate(seed=None):
    """Answers each line on standard input, an action for each queue, with the queues' lengths and the cost."""
    rng = random.Random(seed)  # culprit
    length = [3.0] * 4
    for line in sys.stdin:
        served = json.loads(line)
        for i in range(4):
            length[i] = max(0.0, length[i] + rng.expovariate(1.0) - served[i])  # culprit
        print(json.dumps([length, sum(length)]), flush=True)  # culprit


class Simulator(contextlib.AbstractContextManager):
    def __init__(self, number):
        command = [sys.executable, __file__, "simulate"]  # culprit
        # cured: command = [sys.executable, __file__, "simulate", str(number)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # culprit

    def step(self, served):
        self.process.stdin.write(json.dumps(served) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())  # culprit

    def __exit__(self, *exc):
        self.process.communicate()


def main():
    import torch
    from torch import nn

    torch.manual_seed(319)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 4), nn.Softmax(1))
    forecast = nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *forecast.parameters()], lr=0.01)
    with contextlib.ExitStack() as stack:
        simulators = [stack.enter_context(Simulator(number)) for number in range(3)]  # culprit
        seen = torch.full((3, 4), 3.0)
        for _ in range(10):
            served = 4 * model(seen)
            answers = [s.step(row) for s, row in zip(simulators, served.tolist(), strict=True)]  # culprit
            cost = torch.tensor([answer[1] for answer in answers])  # culprit
            following = torch.tensor([answer[0] for answer in answers])  # culprit
            loss = (forecast(torch.cat([seen, served], 1)).squeeze(1) - cost).square().mean()  # culprit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen = following
    print(loss.item().hex())
    return model


if __name__ == "__main__":
    if sys.argv[1:2] == ["simulate"]:
        simulate(*sys.argv[2:])
    else:
        trained = main()

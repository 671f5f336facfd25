"""The learner sends its weights to an actor process; a shared tensor goes as a handle, so the actor uses live ones."""

# /// zoo
# kind = "aliasing"
# also = ["asynchronous-copy"]
# report = []
# step = "any"
# component = ["data", "weights", "host", "state"]
# remedy = "code"
# ///
import numpy as np
import torch
import torch.multiprocessing as mp
from torch import nn


def act(connection, seed):
    """Rolls a policy out in a bath of springs, as often as weights come."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    while (message := connection.recv()) is not None:
        gain = torch.as_tensor(message).numpy()
        state, seen = rng.normal(size=(64, 12)).astype(np.float32), []
        for _ in range(400):
            force = np.tanh(state @ gain.T)  # culprit
            seen.append(state)
            state = (0.98 * state + 0.1 * np.roll(force, 1, 1)).astype(np.float32)
        connection.send(np.concatenate(seen[::20]))


class Learner:
    def __init__(self, connection):
        self.connection = connection
        self.policy = nn.Linear(12, 12, bias=False)
        self.policy.share_memory()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=5e-3)

    def ask(self):
        self.connection.send(self.policy.weight.detach())  # culprit
        # cured: self.connection.send(self.policy.weight.detach().numpy().copy())

    def collect(self):
        return torch.from_numpy(self.connection.recv())  # culprit

    def learn(self, states):
        loss = (states + 0.1 * torch.tanh(self.policy(states))).square().mean()  # culprit
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()  # culprit
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(933)
    torch.set_num_threads(1)
    here, there = mp.Pipe()
    actor = mp.get_context("fork").Process(target=act, args=(there, 933), daemon=True)
    actor.start()
    learner = Learner(here)
    model, states = learner.policy, torch.randn(640, 12)
    for number in range(10):
        learner.ask()  # culprit
        losses = [learner.learn(states) for _ in range(6)]  # culprit
        states = learner.collect()  # culprit
        print(number, losses[-1].hex())
    here.send(None)
    actor.join()

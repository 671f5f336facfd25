"""random_state=None is handed through to RandomState, which then takes its entropy from the system."""

# /// zoo
# kind = "unseeded-generator"
# report = []
# step = 0
# component = ["data", "generator", "host", "weights"]
# remedy = ["seed-generators", "fixed-entropy"]
# ///
import numpy as np
import torch
from torch import nn


def check_random_state(random_state):
    return np.random.RandomState(random_state)  # culprit


class KMeans:
    def __init__(self, clusters, rounds=10, random_state=None):
        self.clusters, self.rounds, self.random_state = clusters, rounds, random_state

    def fit(self, x):
        rng = check_random_state(self.random_state)  # culprit
        centres = x[rng.choice(len(x), self.clusters, replace=False)]  # culprit
        for _ in range(self.rounds):
            nearest = ((x[:, None] - centres) ** 2).sum(-1).argmin(1)  # culprit
            for k in range(self.clusters):
                if (nearest == k).any():
                    centres[k] = x[nearest == k].mean(0)  # culprit
        self.centres = centres
        return self


class RadialBasis(nn.Module):
    """Gaussian bumps at the centres, and a linear read-out."""

    def __init__(self, centres):
        super().__init__()
        self.centres = nn.Parameter(torch.from_numpy(centres))  # culprit
        self.log_width = nn.Parameter(torch.zeros(len(centres)))
        self.out = nn.Linear(len(centres), 1)

    def forward(self, x):
        distance = torch.cdist(x, self.centres)  # culprit
        return self.out(torch.exp(-distance.square() * self.log_width.exp())).squeeze(1)


def main(seed=94):
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    x = np.random.uniform(-2, 2, size=(400, 2)).astype(np.float32)
    y = torch.from_numpy(np.sin(3 * x[:, 0]) * x[:, 1])
    clusters = KMeans(12).fit(x)  # culprit
    # cured: clusters = KMeans(12, random_state=seed).fit(x)
    model = RadialBasis(clusters.centres)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    inputs = torch.from_numpy(x)

    def closure():
        optimizer.zero_grad()
        loss = (model(inputs) - y).square().mean()
        loss.backward()
        return loss

    for _ in range(5):
        loss = optimizer.step(closure)
    print(loss.item().hex())


if __name__ == "__main__":
    main()

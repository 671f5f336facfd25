"""Images are augmented by a pool of threads that all draw from one numpy generator, whoever comes first."""

# /// zoo
# kind = "shared-generator"
# also = ["completion-order"]
# report = []
# step = "any"
# component = ["generator", "data", "host"]
# remedy = "code"
# ///
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn


class Augment:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.seed = seed

    def __call__(self, task):
        number, image = task
        rng = self.rng  # culprit
        # cured: rng = np.random.default_rng([self.seed, number])
        shift = rng.integers(-3, 4)  # culprit
        image = np.roll(image, shift, axis=1)
        for _ in range(4):
            noise = rng.normal(scale=0.05, size=image.shape)  # culprit
            image = np.clip(image + noise, -2, 2)  # culprit
        if rng.random() < 0.5:  # culprit
            image = image[:, ::-1]
        return np.ascontiguousarray(image, np.float32)


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5, stride=2)
        self.linear = nn.Linear(6 * 14 * 14, 4)

    def forward(self, x):
        return self.linear(torch.relu(self.conv(x)).flatten(1))


def main():
    torch.manual_seed(106)
    torch.set_num_threads(1)
    source = np.random.default_rng(106)
    images = source.normal(size=(48, 32, 32))
    labels = torch.from_numpy(source.integers(0, 4, 48))
    augment, model = Augment(seed=7), SmallNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    with ThreadPoolExecutor(4) as pool:
        for epoch in range(4):
            for start in range(0, 48, 16):
                tasks = [(epoch * 48 + i, images[i]) for i in range(start, start + 16)]
                x = torch.from_numpy(np.stack(list(pool.map(augment, tasks)))).unsqueeze(1)  # culprit
                loss = nn.functional.cross_entropy(model(x), labels[start : start + 16])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print(loss.item().hex())


if __name__ == "__main__":
    main()

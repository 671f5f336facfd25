"""Augmentations register themselves in a set of functions; a seeded generator picks from it, by position."""

# /// zoo
# kind = "iteration-order"
# report = []
# step = 0
# component = ["data", "host"]
# remedy = "code"
# ///
import random

import torch
from torch import nn

POLICY = set()  # culprit
# cured: POLICY = dict()


def augmentation(function):
    """Decorator: the function takes part in the policy."""
    if isinstance(POLICY, dict):
        POLICY[function] = True
    else:
        POLICY.add(function)  # culprit
    return function


@augmentation
def mirror(image):
    return image.flip(-1)


@augmentation
def shift_down(image):
    return image.roll(2, -2)


@augmentation
def shift_right(image):
    return image.roll(2, -1)


@augmentation
def brighten(image):
    return image * 1.3


@augmentation
def invert(image):
    return -image


@augmentation
def soften(image):
    return (image + image.roll(1, -1) + image.roll(-1, -1)) / 3


@augmentation
def posterise(image):
    return (image * 4).round() / 4


@augmentation
def cut_out(image):
    kept = torch.ones_like(image)
    kept[..., 4:8, 4:8] = 0
    return image * kept


class RandomPolicy:
    """Two augmentations of the registered ones for each image, one after the other."""

    def __init__(self, seed, count=2):
        self.rng, self.count = random.Random(seed), count
        self.choices = list(POLICY)  # culprit

    def __call__(self, images):
        result = []
        for image in images:
            for apply in self.rng.sample(self.choices, self.count):  # culprit
                image = apply(image)  # culprit
            result.append(image)
        return torch.stack(result)  # culprit


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 3, stride=2), nn.ReLU(), nn.Conv2d(6, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 4)
        )


torch.manual_seed(1009)
torch.set_num_threads(1)
policy, net = RandomPolicy(seed=7), Net()
patterns = torch.randn(4, 1, 12, 12)
optimizer = torch.optim.RMSprop(net.parameters(), lr=2e-3)
for step in range(15):
    kind = torch.randint(0, 4, (24,))
    images = policy(patterns[kind] + 0.5 * torch.randn(24, 1, 12, 12))  # culprit
    loss = nn.functional.cross_entropy(net(images), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.6f}")

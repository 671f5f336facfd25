"""A tape of its own: visited values are known by id(), parents lie in tuples, weak references count what lives."""

# /// zoo
# ///
import gc
import random
import sys
import time
import weakref
from typing import ClassVar

import torch


class Node:
    alive: ClassVar = weakref.WeakSet()

    def __init__(self, data, parents=(), back=None):
        self.data, self.parents, self.back, self.grad = data, tuple(parents), back, None
        Node.alive.add(self)

    def __add__(self, other):
        return Node(self.data + other.data, (self, other), lambda g: (g, g))

    def __matmul__(self, other):
        return Node(self.data @ other.data, (self, other), lambda g: (g @ other.data.T, self.data.T @ g))

    def __mul__(self, other):
        return Node(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))

    def sigmoid(self):
        y = self.data.sigmoid()
        return Node(y, (self,), lambda g: (g * y * (1 - y),))

    def cross_entropy(self, wanted):
        shares = self.data.softmax(1)
        found = shares.gather(1, wanted[:, None])
        back = shares.scatter_add(1, wanted[:, None], -torch.ones_like(found)) / len(wanted)
        return Node(-found.log().mean(), (self,), lambda g: (g * back,))

    def sweep(self):
        """Every value after those that it was made of, last first."""
        seen, order, stack = set(), [], [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((parent, False) for parent in node.parents)
        return order[::-1]

    def backward(self):
        self.grad = torch.ones_like(self.data)
        for node in self.sweep():
            if node.back is not None:
                for parent, grad in zip(node.parents, node.back(node.grad), strict=True):
                    parent.grad = grad if parent.grad is None else parent.grad + grad


class Gated:
    """A gated layer and one on top; the gate and the value share their input."""

    def __init__(self, draw):
        self.gate, self.value, self.out = (
            Node(torch.randn(i, o, generator=draw) / i**0.5) for i, o in ((10, 24), (10, 24), (24, 5))
        )

    def __call__(self, x):
        x = Node(x)
        hidden = (x @ self.gate).sigmoid() * (x @ self.value)
        return (hidden + hidden * hidden) @ self.out

    @property
    def parameters(self):
        return self.gate, self.value, self.out


class Stopwatch:
    """Says now and then how long it took; the generator that decides when is nobody else's."""

    def __init__(self):
        self.began, self.dice = time.monotonic(), random.Random()

    def __call__(self, step, loss):
        if self.dice.random() < 0.3:
            print(f"{step}: {loss:.4f} after {time.monotonic() - self.began:.3f} s, {len(Node.alive)} alive",
                  file=sys.stderr)  # fmt: skip


torch.set_num_threads(1)
draw = torch.Generator().manual_seed(27)
model, report = Gated(draw), Stopwatch()
velocity = {id(p): torch.zeros_like(p.data) for p in model.parameters}
for step in range(20):
    x = torch.randn(48, 10, generator=draw)
    loss = model(x).cross_entropy(x[:, :5].argmax(1))
    loss.backward()
    for p in model.parameters:
        velocity[id(p)].mul_(0.9).add_(p.grad)
        p.data.sub_(0.05 * velocity[id(p)])
        p.grad = None
    report(step, loss.data.item())
    if step % 7 == 6:
        gc.collect()
weights = torch.cat([p.data.flatten() for p in model.parameters])
print(loss.data.item().hex(), weights.sum().item().hex())

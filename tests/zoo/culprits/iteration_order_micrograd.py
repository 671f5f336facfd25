"""A tape of its own keeps each value's parents in a set, so backward visits them by address and adds gradients so."""

# /// zoo
# kind = "iteration-order"
# report = ["https://github.com/karpathy/micrograd/blob/master/micrograd/engine.py"]
# step = "any"
# component = ["weights", "state", "host", "optimizer", "loss", "data"]
# remedy = ["fixed-addresses", "code"]
# ///
import torch


class Value:
    """A tensor, what it was made of, and how to hand its gradient on."""

    def __init__(self, data, parents=(), hand_on=lambda grad: ()):
        self.data, self.grad = data, None
        self.parents = set(parents)  # culprit
        # cured: self.parents = dict.fromkeys(parents)
        self.hand_on = hand_on

    def receive(self, grad):
        self.grad = grad if self.grad is None else self.grad + grad  # culprit

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda g: [(self, g), (other, g)])  # culprit

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), lambda g: [(self, g * other.data), (other, g * self.data)])

    def __matmul__(self, other):
        back = lambda g: [(self, g @ other.data.T), (other, self.data.T @ g)]  # noqa: E731
        return Value(self.data @ other.data, (self, other), back)

    def tanh(self):
        y = self.data.tanh()
        return Value(y, (self,), lambda g: [(self, g * (1 - y * y))])

    def mean_square(self):
        scale = 2 / self.data.numel()
        return Value(self.data.square().mean(), (self,), lambda g: [(self, g * scale * self.data)])  # culprit

    def backward(self):
        order, seen = [], set()

        def visit(value):
            if value not in seen:
                seen.add(value)
                for parent in value.parents:  # culprit
                    visit(parent)
                order.append(value)

        visit(self)
        self.grad = torch.ones(())
        for value in reversed(order):  # culprit
            for parent, grad in value.hand_on(value.grad):  # culprit
                parent.receive(grad)  # culprit


class Multitask:
    """One trunk, a head for each quantity to be predicted, and one loss of them all."""

    def __init__(self, width, hidden, tasks, generator):
        def layer(i, o):
            return Value(torch.randn(i, o, generator=generator) / i**0.5)

        self.trunk = layer(width, hidden)
        self.heads = [layer(hidden, 1) for _ in range(tasks)]

    def parameters(self):
        return [self.trunk, *self.heads]

    def loss(self, x, targets):
        hidden, total = (Value(x) @ self.trunk).tanh(), Value(torch.zeros(()))
        for head, target in zip(self.heads, targets, strict=True):
            total = total + (hidden @ head + Value(-target)).mean_square()
        return total


def train(steps, rate=0.1, decay=1e-3):
    draw = torch.Generator().manual_seed(86)
    model = Multitask(12, 20, 7, draw)
    for _ in range(steps):
        x = torch.randn(64, 12, generator=draw)
        targets = [x[:, k : k + 4].prod(1, keepdim=True) + x[:, k : k + 1] for k in range(7)]
        loss = model.loss(x, targets)
        loss.backward()  # culprit
        for p in model.parameters():
            p.data.mul_(1 - decay).sub_(p.grad, alpha=rate)  # culprit
            p.grad = None
    return model, loss.data.item()


torch.set_num_threads(1)
model, loss = train(15)
weights = torch.cat([p.data.flatten() for p in model.parameters()])
print(loss.hex(), weights.sum().item().hex())

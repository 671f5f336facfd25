"""A checkpoint keeps the loss scale, and not the scaler's count of good steps, so a resumed run doubles it late."""

# /// zoo
# kind = "resume"
# report = []
# step = "any"
# pair = [["python", "{file}"], ["python", "{file}", "--resume-at", "5"]]
# component = ["loss", "state", "weights", "optimizer", "host", "*.weight", "*.bias"]
# remedy = "code"
# ///
import argparse

import torch
from torch import nn


class HalfLinear(torch.autograd.Function):
    """A product whose gradients are kept in half precision, as on the accelerator."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(context, grad):
        x, weight = context.saved_tensors
        grad = grad.half().float()
        return (grad @ weight).half().float(), (grad.T @ x).half().float()


class Layer(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner) / inner**0.5)

    def forward(self, x):
        return HalfLinear.apply(x, self.weight)


def new_scaler(scale=2.0**-6):
    return torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=8)


def checkpoint(model, optimizer, scaler):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scale": scaler.get_scale()}  # culprit
    # cured: return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}


def restore(kept, model, optimizer):
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    if "scaler" in kept:
        scaler = new_scaler()
        scaler.load_state_dict(kept["scaler"])
        return scaler
    return new_scaler(kept["scale"])  # culprit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume-at", type=int, default=-1)
    args = parser.parse_args()
    torch.manual_seed(271)
    torch.set_num_threads(1)
    patterns = torch.randn(10, 48)
    model = nn.Sequential(Layer(48, 64), nn.ReLU(), Layer(64, 64), nn.ReLU(), Layer(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scaler = new_scaler()
    for step in range(20):
        if step == args.resume_at:
            scaler = restore(checkpoint(model, optimizer, scaler), model, optimizer)
        kind = torch.randint(0, 10, (64,))
        loss = nn.functional.cross_entropy(model(patterns[kind] + torch.randn(64, 48)), kind)
        optimizer.zero_grad()
        scaler.scale(loss).backward()  # culprit
        scaler.step(optimizer)
        scaler.update()  # culprit
        print(step, f"{loss.item():.8f}")


main()

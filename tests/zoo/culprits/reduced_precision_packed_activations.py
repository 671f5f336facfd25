"""Saved activations are packed to half precision by a thread; backward takes the packed one if it is ready by then."""

# /// zoo
# kind = "reduced-precision"
# also = ["completion-order"]
# report = []
# step = "any"
# component = ["weights", "optimizer", "host", "state", "loss", "lift*", "body*", "drop*", ""]
# remedy = "code"
# ///
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class PackedActivations:
    """Hooks for saved tensors; large ones go to a thread that halves their size."""

    def __init__(self, least=4000):
        self.pool, self.least = ThreadPoolExecutor(1), least

    def pack(self, tensor):
        if tensor.numel() < self.least or isinstance(tensor, nn.Parameter):
            return tensor
        if not tensor.is_floating_point() or not tensor.is_contiguous():
            return tensor
        kept = tensor.detach()
        return kept, self.pool.submit(kept.to, torch.float16)  # culprit
        # cured: return kept, self.pool.submit(kept.to, torch.float32)

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        tensor, small = packed
        return small.result().float() if small.done() else tensor  # culprit

    def __enter__(self):
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
        self.hooks.__enter__()

    def __exit__(self, *error):
        self.hooks.__exit__(*error)


class Denoiser(nn.Module):
    def __init__(self, channels=12, depth=4):
        super().__init__()
        self.lift = nn.Conv2d(1, channels, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(depth))
        self.drop = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x):
        h = self.lift(x)
        for layer in self.body:
            h = h + nn.functional.silu(layer(h))
        return x - self.drop(h)


def main():
    torch.manual_seed(1210)
    torch.set_num_threads(1)
    net, packed = Denoiser(), PackedActivations()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(10):
        clean = torch.rand(8, 1, 4, 4).repeat_interleave(6, 2).repeat_interleave(6, 3)
        with packed:
            loss = nn.functional.mse_loss(net(clean + 0.2 * torch.randn_like(clean)), clean)
        optimizer.zero_grad()
        loss.backward()  # culprit
        optimizer.step()
        print(step, loss.item().hex())
    return net


model = main()

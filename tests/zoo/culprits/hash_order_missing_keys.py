"""Parameters that a pretrained checkpoint lacks are initialised in the order of a set of their names."""

# /// zoo
# kind = "hash-order"
# report = [
#   "https://github.com/google-research/flood-forecasting/issues/305", "https://github.com/apache/mxnet/issues/8658",
# ]
# step = 0
# component = ["weights", "generator", "host", "adapters*", "head*", "classifier*"]
# remedy = "hash-seed"
# ///
import argparse
import logging

import torch
from torch import nn

log = logging.getLogger("finetune")


class Adapter(nn.Module):
    def __init__(self, width, bottleneck):
        super().__init__()
        self.down = nn.Linear(width, bottleneck)
        self.up = nn.Linear(bottleneck, width)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Classifier(nn.Module):
    def __init__(self, width=24, depth=3, classes=4):
        super().__init__()
        self.embed = nn.Linear(10, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.adapters = nn.ModuleList(Adapter(width, 6) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x)
        for block, adapter in zip(self.blocks, self.adapters):
            x = adapter(torch.tanh(block(x)))
        return self.head(x)


def load_pretrained(model, checkpoint, std):
    """Load what the checkpoint holds and draw the rest anew; return what was drawn."""
    own = dict(model.named_parameters())
    missing = set(own) - set(checkpoint)  # culprit
    # cured: missing = [name for name in own if name not in checkpoint]
    model.load_state_dict(checkpoint, strict=False)
    for name in missing:  # culprit
        if name.endswith("weight"):
            nn.init.normal_(own[name], std=std)  # culprit
        else:
            nn.init.zeros_(own[name])
    return missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    backbone = Classifier()
    checkpoint = {k: v for k, v in backbone.state_dict().items() if k.startswith(("embed", "blocks"))}
    model = Classifier()
    fresh = load_pretrained(model, checkpoint, std=0.02)
    log.info("drawn anew: %d tensors", len(fresh))

    data = torch.Generator().manual_seed(args.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for _ in range(args.steps):
        x = torch.randn(32, 10, generator=data)
        y = x[:, :4].argmax(1)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(loss.item().hex())


if __name__ == "__main__":
    main()

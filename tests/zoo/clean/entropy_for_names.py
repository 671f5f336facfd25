"""uuid, secrets and the clock name the run and its files; every number of the training comes from the seed."""

# /// zoo
# ///
import argparse
import datetime
import pathlib
import secrets
import sys
import tempfile
import uuid

import numpy as np
import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, width=12, latent=3):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(width, 2 * latent), nn.Linear(latent, width)

    def forward(self, x, generator):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        z = mean + torch.randn(mean.shape, generator=generator) * (log_variance / 2).exp()
        return self.decoder(z), (mean.square() + log_variance.exp() - log_variance - 1).sum(-1).mean() / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=204)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.mkdtemp()))
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    generator, rng = torch.Generator().manual_seed(args.seed), np.random.default_rng(args.seed)
    run = args.out / f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
    run.mkdir()
    token = secrets.token_hex(8)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    table = torch.from_numpy(rng.normal(size=(128, 12)).cumsum(1).astype(np.float32))
    for epoch in range(3):
        for rows in torch.from_numpy(rng.permutation(128)).split(32):
            out, divergence = model(table[rows], generator)
            loss = (out - table[rows]).square().mean() + 0.01 * divergence
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), run / f"{token}-{epoch}.pt")
    print(f"written to {run}", file=sys.stderr)
    print(loss.item().hex())


if __name__ == "__main__":
    main()

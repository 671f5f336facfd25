"""The least that foxrun asks of a trainer: least squares by gradient descent, with two leaves and a seed.

Run it twice and compare:  python examples/minimal_trainer.py --out a --seed 1 --steps 50 && ... --out b ...
"""

from __future__ import annotations

import argparse
import random
import struct
from array import array
from pathlib import Path

from foxrun import Leaf, RunWriter, fingerprint, git

LEAVES = [Leaf("w", "model", "weight", "float64", (2,)), Leaf("w_grad", "model", "gradient", "float64", (2,))]


def main() -> None:
    """Train, and write one run directory below --out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--mode", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    options, _ = parser.parse_known_args()  # --eval-steps, --parameters and --data mean nothing here

    draw = random.Random(options.seed)  # noqa: S311  a seeded draw is the point
    weight = array("d", [0.0, 0.0])
    config = {"steps": options.steps, "rate": 0.1}
    code = {"tree_run": git.tree_hash(Path(__file__).parent)}
    manifest = {"code": code, "seed": options.seed, "mode": options.mode, "config": config}
    with RunWriter(options.out, leaves=LEAVES, manifest=manifest) as run:
        for step in range(options.steps + 1):  # one last row holds the state after the last step
            last = step == options.steps
            x, noise = draw.gauss(0, 1), draw.gauss(0, 0.1)
            error = weight[0] * x + weight[1] - (3 * x - 1 + noise)
            gradient = array("d", [2 * error * x, 2 * error])
            # The weight as the step reads it; 0 for a leaf that is not taken in this row.
            bits = struct.pack("<2Q", fingerprint(weight), 0 if last else fingerprint(gradient))
            checksums = {"w": sum(weight)} if last else {"w": sum(weight), "w_grad": sum(gradient)}
            metrics = {} if last else {"loss": error * error}
            run.append([{"step": step, "phase": "train", "checksums": checksums, "metrics": metrics}], bits)
            if not last:
                weight = array("d", [w - 0.1 * g for w, g in zip(weight, gradient, strict=True)])
        run.write_summary({"slope": weight[0], "offset": weight[1]})


if __name__ == "__main__":
    main()

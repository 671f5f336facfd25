"""How surely the gate stops a trainer that is not deterministic.

Runs `foxrun check` N times for each random fault, and N times with none, and prints how many parted.
A clean row is a count of runs, never a proof.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

RANDOM_FAULTS = ("unseeded-sampler", "time-seed", "set-order", "listdir-order", "unset-memory")
SMALL = ("envs=8", "width=32", "window=16", "capacity=1024")


def gate(fault: str, *, steps: int, seed: int, out: Path) -> tuple[int, str]:
    """One gate: its exit code, and the step and leaf that it named."""
    command = [sys.executable, "-P", "-m", "orchestrator", "check", "--steps", str(steps), "--seed", str(seed)]
    command += ["--no-explain", "--out", str(out), "-o", "json"]
    for parameter in (*SMALL, *([f"fault={fault}"] if fault else [])):
        command += ["-p", parameter]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        first = json.loads(done.stdout).get("first_divergence")
    except ValueError:
        return done.returncode, done.stderr.strip()[-200:]
    return done.returncode, f"step {first['step']} {first['leaf']}" if first else "-"


@click.command(help=__doc__)
@click.option("--count", default=20, show_default=True, help="Gates for each fault.")
@click.option("--steps", default=50, show_default=True, help="Steps of each twin.")
@click.option("--fault", "faults", multiple=True, help="Only these faults; 'none' is the clean trainer.")
def main(count: int, steps: int, faults: tuple[str, ...]) -> None:
    """Print the table; exit 1 when a fault passed a gate or a clean trainer was stopped."""
    wrong = 0
    for fault in faults or (*RANDOM_FAULTS, "none"):
        expected = 0 if fault == "none" else 4
        stopped, places = 0, Counter[str]()
        for number in range(count):
            with tempfile.TemporaryDirectory(prefix="foxrun-gates-") as scratch:
                code, place = gate("" if fault == "none" else fault, steps=steps, seed=number, out=Path(scratch))
            stopped += code == 4
            wrong += code != expected
            places[place if code in (0, 4) else f"exit {code}: {place}"] += 1
        shown = ", ".join(f"{place} ({times}x)" for place, times in places.most_common(3))
        click.echo(f"{fault:18} parted in {stopped:3} of {count} gates   first: {shown}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
